-- Predictions become a table (refilled in one step when it is there from before) ...

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN xgboost.gbtree
LABEL income
INTO employee_trees;

SELECT * FROM applicant TO PREDICT scored.income USING employee_trees;

SELECT income, count(*) AS people FROM scored GROUP BY income ORDER BY income;

-- ... or come straight back.
SELECT * FROM applicant WHERE id <= 2003 TO PREDICT income USING employee_trees;
