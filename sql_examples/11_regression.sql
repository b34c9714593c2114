-- A number to learn makes a regression. The label is scaled for learning and back for you.

SELECT age, education, occupation, married, capital_gain, hours
FROM employee
TO TRAIN DNNRegressor
WITH model.hidden_units = [16], train.epoch = 5, train.batch_size = 64
LABEL hours
INTO employee_hours;

SELECT * FROM applicant TO EVALUATE employee_hours LABEL hours;
