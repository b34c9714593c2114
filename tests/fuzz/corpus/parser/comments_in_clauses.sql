SELECT 1 -- it's
TO /* don't */ TRAIN x -- '
WITH a=1 /* ; */, b=2 LABEL y INTO a--b
