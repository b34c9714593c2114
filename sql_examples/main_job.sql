-- One statement to a trained model and its predictions.
SELECT * FROM employee LABEL income INTO my_model;                                  -- model type chosen for you
SELECT * FROM census_train TO TRAIN DNNClassifier WITH model.hidden_units=[64,32], train.epoch=5 LABEL income INTO census_dnn;
SELECT * FROM census_test TO EVALUATE census_dnn LABEL income INTO census_metrics;
SELECT * FROM census_test TO PREDICT census_scored.income USING census_dnn;
SELECT income, count(*) AS people FROM census_scored GROUP BY income ORDER BY income;
