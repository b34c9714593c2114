-- Networks for tables of many categories: factorization machines, alone and beside hidden layers,
-- and layers of products of features.

SELECT age, education, occupation, hours, married, income
FROM employee
TO TRAIN FMClassifier
WITH model.k = 4, train.epoch = 10, train.batch_size = 64
LABEL income
INTO machine;

SELECT age, education, occupation, hours, married, income
FROM employee
TO TRAIN DeepFMClassifier
WITH model.k = 4, model.hidden_units = [16], train.epoch = 10, train.batch_size = 64
LABEL income
INTO deep_machine;

SELECT age, education, occupation, hours, married, income
FROM employee
TO TRAIN DCNClassifier
WITH model.k = 4, model.hidden_units = [16], train.epoch = 10, train.batch_size = 64
LABEL income
INTO crossed;

SELECT * FROM applicant TO EVALUATE deep_machine WITH validation.metrics = 'auc, accuracy';

-- Who liked what: users and items, as two categories, and as two towers, each with features of its
-- own.

CREATE TABLE liked AS
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)
SELECT n, 'u' || CAST(n * 7 % 60 AS text) AS reader, 18 + n * 7 % 60 AS age,
       't' || CAST(n * 13 % 41 AS text) AS title, n * 13 % 41 % 4 AS shelf,
       CASE WHEN (n * 7 % 60) / 15 = n * 13 % 41 % 4 THEN 'yes' ELSE 'no' END AS liked
FROM numbers;

SELECT reader, title, liked
FROM liked
TO TRAIN MatrixFactorizationClassifier
WITH model.k = 4, train.epoch = 20, train.batch_size = 64, optimizer.learning_rate = 0.01
LABEL liked
INTO pairs;

SELECT reader, age, title, shelf, liked
FROM liked
TO TRAIN TwoTowerClassifier
WITH model.k = 4, model.hidden_units = [16], train.epoch = 10, train.batch_size = 64
COLUMN reader, age FOR user
COLUMN title, CATEGORY_ID(shelf, 4) FOR item
LABEL liked
INTO towers;

SELECT reader, age, title, shelf FROM liked WHERE n <= 3 TO PREDICT liked USING towers;
