-- Models have versions. Training again under the same name makes a new version, live at once.

SELECT age, hours, married, income FROM employee
TO TRAIN LinearClassifier LABEL income INTO pay;

SELECT age, hours, married, education, income FROM employee
TO TRAIN LinearClassifier LABEL income INTO pay;

SHOW MODEL pay;

-- Back to the first version.
ALTER MODEL pay ROLLBACK;

SHOW MODELS;

SHOW TRAIN pay;

DROP MODEL pay;

SHOW MODELS;
