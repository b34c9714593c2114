-- What would happen? EXPLAIN prints the plan: rows, features, model, split, where it would run.
-- Nothing runs.

EXPLAIN SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN DNNClassifier WITH model.hidden_units = [32, 16]
LABEL income INTO employee_dnn;
