-- Every training is a job; jobs are rows of ordinary tables.

SELECT age, hours, married, income FROM employee
TO TRAIN LinearClassifier WITH train.epoch = 2 LABEL income INTO pay;

SHOW JOBS;

-- WAIT JOB returns when a job has ended (here: at once), with its statement's row or its error.
WAIT JOB 1;
