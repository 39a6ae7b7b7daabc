"""One sentence for every figure and table of the report that says how to read it."""

HOW_TO_READ = {
    # Summary
    "accuracy": "proportion of correct predictions, with its 95 % interval",
    "baseline": "a useful model has a higher accuracy",
    "log loss": "mean of −log p(true class); 0 is perfect, {uniform:.2f} is equal probabilities for all classes",
    "ROC AUC": "probability that a row of the second class scores higher than a row of the first; 0.5 is chance",
    "calibration error": "mean distance between predicted probability and observed frequency; 0 is perfect",
    # Training data
    "classes": "A class with few rows has uncertain parameters.",
    "members": "The prediction is the average of these models' probabilities with these weights.",
    "columns": "The family is the distribution fitted to a column, and the prior is its distribution before the data.",
    "dropped": "These columns have no effect on the predictions.",
    # Feature importance
    "importance": "A column with a larger increase contributes more; an interval that includes 0 means that the "
    "contribution is not certain.",
    "column plots": "A column whose curves or bars differ between the classes separates them; where they overlap, it "
    "does not.",
    "class means": "Each image is the mean of one class's training rows.",
    "graph": "An arrow leads from a variable to one whose distribution depends on it; a box stands for repetitions.",
    # Evaluation
    "by class": "Precision is the proportion of predictions of a class that are correct, recall the proportion of its "
    "rows that are found, and F1 their harmonic mean.",
    "confusion matrix": "The diagonal counts correct predictions; every other cell counts rows of the class at the "
    "left that were predicted as the class above.",
    "reliability": "Points on the dashed line are calibrated: of rows predicted with probability 0.8, 80 % are "
    "correct. Below the line the model is overconfident.",
    # Data checks
    "outliers": "These rows are less likely under the model than chance explains: check them for errors.",
    "values": "The training rows had none of these values, so the model treats them as missing values.",
    "labels": "The model predicts another class with high probability: check these labels.",
    "drift": "The bits say how much worse the model fits a column here than in the training data; a column has drifted "
    "if its whole interval is above 0.",
    "groups": "A group marked worse has a higher log loss than the other rows, beyond chance.",
    # Dependence
    "dependence": "Naive Bayes assumes that columns are independent within each class; it counts what dependent "
    "columns share twice, so its probabilities can be overconfident.",
    # Explanations
    "explanation": "A positive number favors the predicted class, a negative number the other class; the numbers add "
    "up to the log-odds of the two classes.",
    # What-if
    "what-if": "Choose a row and change its cells, the class frequencies or the misclassification costs to see how the "
    "prediction changes.",
}
