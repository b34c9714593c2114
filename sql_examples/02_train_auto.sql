-- The shortest way to a model: name the column to learn. What kind of model fits is looked up in the
-- data, and the first line of the output says which one and why.

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee LABEL income INTO my_model;
