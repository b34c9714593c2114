"""What scikit-learn and XGBoost reach on the tables of quality_bench.py, set up as by a careful user."""
import sys

# Columns that a careful user leaves out, on both sides: row numbers, and those that sum to the label.
LEFT_OUT = {"bank": {"id"}, "bike": {"instant", "casual", "registered"}}
LABELS = {"census": "income", "iris": "class", "housing": "medv", "titanic": "survived", "bank": "y",
          "letter": "letter", "diamonds": "price", "bike": "cnt", "spam": "class"}
POSITIVE = {"census": ">50K", "bank": "yes", "spam": "spam"}


def have_peers():
    try:
        import pandas, sklearn, xgboost  # noqa: F401
        return True
    except ImportError:
        print("without python3-{pandas,sklearn,xgboost}: no peers", file=sys.stderr)
        return False


def peer_figure(kind, data, metric, names, train, test, seed):
    import numpy as np
    import pandas as pd
    import xgboost
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import accuracy_score, mean_squared_error, roc_auc_score
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    train = pd.DataFrame(train, columns=names)
    test = pd.DataFrame(test, columns=names)
    y, yt = train.pop(LABELS[data]), test.pop(LABELS[data])
    if data in POSITIVE:
        y, yt = (y == POSITIVE[data]).astype(int), (yt == POSITIVE[data]).astype(int)
    if data == "letter":
        y, yt = y.map(lambda c: ord(c) - ord("A")), yt.map(lambda c: ord(c) - ord("A"))
    for frame in train, test:
        frame.drop(columns=list(LEFT_OUT.get(data, ())), inplace=True)
    if "dteday" in train.columns:
        for frame in train, test:
            date = pd.to_datetime(frame.pop("dteday"))
            frame["year"], frame["month"] = date.dt.year, date.dt.month
            frame["weekday_of_date"], frame["day_of_year"] = date.dt.weekday, date.dt.dayofyear
    texts = [c for c in train.columns if train[c].dtype == object]
    numbers = [c for c in train.columns if c not in texts]
    train[texts], test[texts] = train[texts].fillna("?"), test[texts].fillna("?")
    if data == "spam":
        prepare = ColumnTransformer([("t", TfidfVectorizer(sublinear_tf=True), "message")])
    else:
        prepare = ColumnTransformer([("n", StandardScaler(), numbers),
                                     ("t", OneHotEncoder(handle_unknown="ignore"), texts)])
    regression = metric == "rmse"
    rounds, depth = {"iris": (20, 6), "titanic": (50, 4)}.get(data, (100, 6))
    eta = 0.3 if data == "iris" else 0.1
    model = {
        "logistic": lambda: LogisticRegression(max_iter=2000),
        "ridge": lambda: Ridge(alpha=1e-3),
        "mlp": lambda: (MLPRegressor if regression else MLPClassifier)(
            (10, 20) if data == "iris" else (64, 32), learning_rate_init=1e-3,
            batch_size=32 if data in ("iris", "housing", "titanic") else 256, random_state=seed,
            early_stopping=data not in ("census", "iris", "housing", "titanic"),
            max_iter={"census": 5, "iris": 100, "housing": 200, "titanic": 20}.get(data, 200)),
        "xgboost": lambda: (xgboost.XGBRegressor if regression else xgboost.XGBClassifier)(
            n_estimators=rounds, max_depth=depth, learning_rate=eta, tree_method="hist"),
    }[kind]()
    import warnings
    warnings.simplefilter("ignore")
    fitted = make_pipeline(prepare, model).fit(train, y)
    if metric == "rmse":
        return float(np.sqrt(mean_squared_error(yt, fitted.predict(test))))
    if metric == "accuracy":
        return float(accuracy_score(yt, fitted.predict(test)))
    return float(roc_auc_score(yt, fitted.predict_proba(test)[:, 1]))
