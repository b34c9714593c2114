-- A network with two hidden layers. Text columns become embeddings, numbers are standardised, NULLs
-- are a category of their own: the data needs no preparation.

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN DNNClassifier
WITH model.hidden_units = [32, 16], train.epoch = 20, train.batch_size = 64
LABEL income
INTO employee_dnn;
