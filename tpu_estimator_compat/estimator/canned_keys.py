"""Keys of the predictions and metrics of canned models, which other code reads too."""


class PredictionKeys:
    """Keys of predictions."""

    ALL_CLASSES = "all_classes"
    ALL_CLASS_IDS = "all_class_ids"
    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"
    TOP_K = "top_k"


class MetricKeys:
    """Keys of metrics."""

    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy_baseline"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    LABEL_MEAN = "label/mean"
    LOSS = "loss"
    LOSS_MEAN = "average_loss"
    LOSS_REGULARIZATION = "regularization_loss"
    PRECISION = "precision"
    PREDICTION_MEAN = "prediction/mean"
    RECALL = "recall"
