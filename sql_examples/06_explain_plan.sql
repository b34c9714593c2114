-- EXPLAIN prints the plan without running it: rows, features, model, split, and where it would run.

EXPLAIN SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN DNNClassifier WITH model.hidden_units = [32, 16]
LABEL income INTO employee_dnn;
