-- The shortest way to a model: name the column to learn. Several kinds of models are tried for half
-- a minute, and the best one is kept. With auto.seconds=0 a single model is trained that suits the
-- table's size and shape; the first line of the output says which one and why.

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee LABEL income WITH auto.seconds=0 INTO my_model;
