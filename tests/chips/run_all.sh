#!/usr/bin/env bash
# Runs the saved steps of this folder, the most important first, within five minutes.
#
#   run_all.sh RESULTS [PYTHON]
#
# RESULTS gets NAME.result.json of each step, each figure as soon as it is known; machine.json;
# log.txt; and gpu.csv, how busy the GPU was, five times a second. $LIMIT seconds (300) end all.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=${1:?a folder for the results}
python=${2:-python3}
end=$((SECONDS + ${LIMIT:-300}))
mkdir -p "$results"
status=0

"$python" - >"$results/machine.json" <<'PY' || status=1
import datetime, json, platform, subprocess
import jax, jaxlib, numpy
query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
try:
    driver = subprocess.run(query, capture_output=True, text=True).stdout.strip() or None
except OSError:
    driver = None
print(json.dumps({
    "device": jax.devices()[0].device_kind,
    "devices": jax.device_count(),
    "driver": driver,
    "python": platform.python_version(),
    "jax": jax.__version__,
    "jaxlib": jaxlib.__version__,
    "numpy": numpy.__version__,
    "date": datetime.date.today().isoformat(),
}, indent=1))
PY
cat "$results/machine.json"

watch() { # watch NAME: prints how busy the GPU is, until it is ended
  while percent=$(nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits); do
    echo "$1, $percent"
    sleep 0.2
  done
}

while read -r name seconds; do
  left=$((end - SECONDS))
  if ((left < 10)); then
    echo "$name: not run, the time is up"
    status=1
    continue
  fi
  watch "$name" >>"$results/gpu.csv" 2>/dev/null &
  watcher=$!
  begun=$SECONDS
  timeout -k 5 $((seconds < left ? seconds : left)) "$python" "$here/$name/run_step.py" \
    --seconds 5 --result "$results/$name.result.json" >"$results/$name.log" 2>&1 </dev/null
  code=$?
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  ((code)) && status=1
  {
    echo "=== $name: exit status $code after $((SECONDS - begun)) s"
    tail -n 40 "$results/$name.log"
  } | tee -a "$results/log.txt"
  rm "$results/$name.log"
done <"$here/order"
exit "$status"
