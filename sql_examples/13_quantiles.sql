-- How far a number may be off: three quantiles of it at once, each a column.

SELECT age, education, occupation, married, capital_gain, hours
FROM employee
TO TRAIN DNNRegressor
WITH model.loss = 'quantile', model.quantiles = [0.1, 0.5, 0.9], model.hidden_units = [16], train.epoch = 10,
     train.batch_size = 64
LABEL hours
INTO hours_between;

SELECT * FROM applicant TO EVALUATE hours_between LABEL hours;

SELECT id, age, education, occupation, married, capital_gain
FROM applicant WHERE id <= 2003
TO PREDICT hours WITH predict.keep = ['id'] USING hours_between;

-- Counts over different lengths of time: what is learnt is the rate.

CREATE TABLE policy AS
SELECT id, age, occupation, 1 + id % 12 AS months, (1 + id % 12) * (hours % 3 + married) / 6 AS claims FROM people;

SELECT age, occupation, months, claims
FROM policy
TO TRAIN DNNRegressor
WITH model.loss = 'poisson', model.exposure_column = 'months', model.hidden_units = [16], train.epoch = 10,
     train.batch_size = 64, split.kind = 'none'
LABEL claims
INTO claims_a_month;

SELECT id, age, occupation, 12 AS months FROM policy WHERE id <= 3 TO PREDICT claims WITH predict.keep = ['id'] USING claims_a_month;
