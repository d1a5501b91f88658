"""The execution of functions: eager contexts, traces, executors, threads, other machines."""
