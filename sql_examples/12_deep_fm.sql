-- Factorization machines: each value of a category has a vector, and products of vectors say what two
-- values mean together. DeepFM has hidden layers beside it, DCN layers of products.

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN DeepFMClassifier
WITH model.k = 8, model.hidden_units = [32, 16], train.epoch = 10, train.batch_size = 64
LABEL income
INTO employee_deep_fm;

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN FMClassifier
WITH model.k = 8, model.l2 = 0.001, train.epoch = 10, train.batch_size = 64
LABEL income
INTO employee_fm;

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN DCNClassifier
WITH model.k = 8, model.cross_layers = 2, model.cross_rank = 8, train.epoch = 10, train.batch_size = 64
LABEL income
INTO employee_dcn;
