-- Wide and deep: a linear part that memorises, including crossed columns, and a deep part that
-- generalises.

SELECT age, education, occupation, hours, married, capital_gain, income
FROM employee
TO TRAIN DNNLinearCombinedClassifier
WITH model.dnn_hidden_units = [32, 16], train.epoch = 10, train.batch_size = 64
COLUMN INDICATOR(CATEGORY_ID(married, 2)), CROSS([education, occupation], 100)
    FOR linear_feature_columns
COLUMN age, hours, capital_gain, EMBEDDING(VOCABULARY(education), 4)
    FOR dnn_feature_columns
LABEL income
INTO employee_wide_deep;
