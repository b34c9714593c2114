-- Predictions go into a table (an existing one is refilled in one step) ...

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN xgboost.gbtree
LABEL income
INTO employee_trees;

SELECT * FROM applicant TO PREDICT scored.income USING employee_trees;

SELECT income, count(*) AS people FROM scored GROUP BY income ORDER BY income;

-- ... or straight to the client.
SELECT * FROM applicant WHERE id <= 2003 TO PREDICT income USING employee_trees;
