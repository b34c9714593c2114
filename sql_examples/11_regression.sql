-- Learning a number is regression. The label is scaled for learning, and predictions are scaled
-- back.

SELECT age, education, occupation, married, capital_gain, hours
FROM employee
TO TRAIN DNNRegressor
WITH model.hidden_units = [16], train.epoch = 5, train.batch_size = 64
LABEL hours
INTO employee_hours;

SELECT * FROM applicant TO EVALUATE employee_hours LABEL hours;
