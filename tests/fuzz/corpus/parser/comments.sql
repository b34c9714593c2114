/* /* nested; */ */ SELECT 1 /* /* */; SELECT 2; /*/ */ SELECT --;
3