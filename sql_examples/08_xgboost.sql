-- XGBoost, with its own parameter names. Categories need no encoding, NULLs no filling.

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN xgboost.gbtree
WITH objective = "binary:logistic", train.num_boost_round = 50, max_depth = 4, eta = 0.2
LABEL income
INTO employee_boosted;

-- Which columns matter?
SELECT * FROM employee TO EXPLAIN employee_boosted USING XGBoostExplainer;
