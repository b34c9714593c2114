-- How good is a model on people that it has not seen?

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN LinearClassifier
LABEL income
INTO employee_linear;

SELECT * FROM applicant TO EVALUATE employee_linear LABEL income INTO employee_metrics;

-- The metrics are a table like any other.
SELECT auc, accuracy FROM employee_metrics;
