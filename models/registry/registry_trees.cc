#include <utility>

#include "models/registry/registry_internal.h"

namespace sluice::models {
namespace {

enum class Booster { kTree, kDart, kLinear };

constexpr double kMaxRounds = 100'000;      // ten times the longest run worth its time
constexpr double kMaxTreeClasses = 10'000;  // one tree per class and round
constexpr double kMaxDepth = 64;            // 0: no limit but max_leaves

std::vector<std::string> Objectives(ModelTask task) {
  std::vector<std::string> classification = {"binary:hinge", "binary:logistic", "binary:logitraw",
                                             "multi:softmax", "multi:softprob"};
  std::vector<std::string> ranking = {"rank:map", "rank:ndcg", "rank:pairwise"};
  std::vector<std::string> regression = {
      "count:poisson", "reg:absoluteerror",    "reg:gamma",        "reg:linear",
      "reg:logistic",  "reg:pseudohubererror", "reg:squarederror", "reg:squaredlogerror",
      "reg:tweedie",   "survival:cox"};
  switch (task) {
    case ModelTask::kClassification:
      return classification;
    case ModelTask::kRegression:
      return regression;
    case ModelTask::kRanking:
      return ranking;
    case ModelTask::kByObjective:
      break;
  }
  std::vector<std::string> all = std::move(classification);
  all.insert(all.end(), ranking.begin(), ranking.end());
  all.insert(all.end(), regression.begin(), regression.end());
  return all;
}

std::vector<std::string> EvalMetrics() {
  return {"rmse",
          "rmsle",
          "mae",
          "mape",
          "mphe",
          "logloss",
          "error",
          "error@n",
          "merror",
          "mlogloss",
          "auc",
          "aucpr",
          "ndcg",
          "ndcg@n",
          "map",
          "map@n",
          "pre@n",
          "poisson-nloglik",
          "gamma-nloglik",
          "gamma-deviance",
          "tweedie-nloglik",
          "tweedie-nloglik@n",
          "cox-nloglik"};
}

void AppendLearning(ModelTask task, std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Text("objective", {}, Objectives(task),
                             "what is minimised; chosen by the label when not given"));
  attributes->push_back(Text("eval_metric", {}, EvalMetrics(),
                             "metric reported while it trains, and used to stop early"));
  attributes->push_back(Integer("num_class", {}, Between(2, kMaxTreeClasses),
                                "number of classes; counted in the data when not given"));
  attributes->push_back(
      WithAliases(Number("eta", 0.3, Between(0, 1), "how much of each round's step is taken"),
                  {"learning_rate"}));
  attributes->push_back(
      WithAliases(Number("reg_lambda", 1.0, AtLeast(0), "L2 penalty on weights"), {"lambda"}));
  attributes->push_back(
      WithAliases(Number("reg_alpha", 0.0, AtLeast(0), "L1 penalty on weights"), {"alpha"}));
  attributes->push_back(Number(
      "base_score", {}, {},
      "prediction before the first round; by default the best constant, of dart, gblinear and "
      "rankings XGBoost's own or the label's mean"));
  attributes->push_back(
      Number("scale_pos_weight", 1.0, AtLeast(0), "weight of the positive class"));
  attributes->push_back(Number("tweedie_variance_power", {}, Between(1, 2),
                               "reg:tweedie: between Poisson (1) and gamma (2)"));
  constexpr double kLeastSlope = 1e-9;  // the loss divides by its square
  attributes->push_back(Number("huber_slope", {}, AtLeast(kLeastSlope),
                               "reg:pseudohubererror: where it turns linear"));
  attributes->push_back(WithAliases(
      Integer("seed", {}, AtLeast(0), "seed of row and column samples; engine.seed by default"),
      {"random_state"}));
  attributes->push_back(WithAliases(
      Integer("nthread", {}, Between(0, 1024), "threads; 0 or not given: as many as processors"),
      {"n_jobs"}));
  attributes->push_back(WithoutEffect(
      Integer("verbosity", int64_t{0}, Between(0, 3),
              "taken over from XGBoost, no effect: libxgboost itself tells nothing")));
  attributes->push_back(WithoutEffect(
      Flag("silent", {}, "taken over from XGBoost, no effect: libxgboost itself tells nothing")));
  attributes->push_back(
      Number("missing", {}, {}, "a number that means missing, as NULL always does"));
  attributes->push_back(
      WithAliases(Text("weight_column", {}, {}, "the column that holds each row's weight"),
                  {"model.weight_column"}));
  attributes->push_back(Text("group_column", {}, {},
                             "ranking: the column that names each row's query; rows of one query "
                             "stand together"));
}

void AppendTree(bool forest, std::vector<AttributeSpec>* attributes) {
  attributes->push_back(
      Integer("max_depth", int64_t{6}, Between(0, kMaxDepth), "depth of a tree; 0: no limit"));
  attributes->push_back(Integer("max_leaves", {}, AtLeast(0), "leaves of a tree; 0: no limit"));
  attributes->push_back(Text("grow_policy", {}, {"depthwise", "lossguide"},
                             "split the nodes nearest to the root first, or the best ones"));
  attributes->push_back(Text("tree_method", {}, {"auto", "exact", "approx", "hist"},
                             "how splits are searched; hist when not given"));
  attributes->push_back(
      Integer("max_bin", {}, Between(2, 65'536),
              "hist: bins of a feature, one of them for missing numbers; 256 by default"));
  attributes->push_back(WithAliases(
      Number("gamma", 0.0, AtLeast(0), "least gain that splits a node"), {"min_split_loss"}));
  attributes->push_back(
      Number("min_child_weight", 1.0, AtLeast(0), "least sum of hessians in a leaf"));
  attributes->push_back(
      Number("max_delta_step", 0.0, AtLeast(0),
             "largest step of a leaf; 0: no limit; 0.7 for count:poisson when not given"));
  // XGBoost accepts (0, 1]; less than a ten-thousandth of the rows or columns is surely a mistake.
  const Range share = Between(1e-4, 1);
  attributes->push_back(
      Number("subsample", forest ? 0.8 : 1.0, share, "share of the rows that a tree sees"));
  attributes->push_back(
      Number("colsample_bytree", 1.0, share, "share of the columns that a tree sees"));
  attributes->push_back(
      Number("colsample_bylevel", 1.0, share, "share of the columns that a level sees"));
  attributes->push_back(Number("colsample_bynode", forest ? 0.8 : 1.0, share,
                               "share of the columns that a split sees"));
  attributes->push_back(Integer("num_parallel_tree", {}, Between(1, kMaxRounds),
                                forest ? "trees of the forest; train.num_boost_round by default"
                                       : "trees grown side by side in a round"));
  attributes->push_back(
      WithoutEffect(Text("importance_type", std::string("gain"),
                         {"gain", "weight", "cover", "total_gain", "total_cover"},
                         "taken over from XGBoost, no effect: TO EXPLAIN tells splits and gain")));
}

void AppendDart(std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Text("sample_type", {}, {"uniform", "weighted"}, "how trees are dropped"));
  attributes->push_back(
      Text("normalize_type", {}, {"tree", "forest"}, "how a new tree is weighed against dropped"));
  attributes->push_back(
      Number("rate_drop", 0.0, Between(0, 1), "share of earlier trees dropped in a round"));
  attributes->push_back(Flag("one_drop", {}, "true: at least one tree is dropped in a round"));
  attributes->push_back(
      Number("skip_drop", 0.0, Between(0, 1), "probability that a round drops nothing"));
}

void AppendLinear(std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Text("updater", {}, {"shotgun", "coord_descent"},
                             "shotgun: parallel, not repeatable; coord_descent by default"));
  attributes->push_back(Text("feature_selector", {},
                             {"cyclic", "shuffle", "random", "greedy", "thrifty"},
                             "the order in which coord_descent visits the features"));
  attributes->push_back(
      Integer("top_k", {}, AtLeast(0), "greedy, thrifty: features visited in a round; 0: all"));
}

void AppendTraining(bool forest, std::vector<AttributeSpec>* attributes) {
  attributes->push_back(WithAliases(
      Integer("train.num_boost_round", int64_t{100}, Between(1, kMaxRounds),
              forest ? "trees of the forest" : "rounds; eta is 0.1 when neither is given"),
      {"n_estimators"}));
  attributes->push_back(
      Integer("train.early_stopping_rounds", {}, AtLeast(0),
              forest ? "stop after this many rounds without a better validation metric; 0: off"
                     : "stop after this many rounds without a better validation metric; 0: off; 10 "
                       "where train.num_boost_round is not given"));
  attributes->push_back(
      Integer("train.save_checkpoints_steps", int64_t{10}, AtLeast(1),
              "with engine.checkpoint_dir: rounds between two checkpoints; more where writing one "
              "takes longer"));
  attributes->push_back(
      WithoutEffect(Integer("train.batch_size", int64_t{-1}, AtLeast(-1),
                            "taken over from SQLFlow: trees always see all rows")));
  attributes->push_back(
      WithoutEffect(Integer("train.epoch", int64_t{1}, AtLeast(1),
                            "taken over from SQLFlow: rounds, not epochs, make a tree model")));
  for (AttributeSpec& spec : TrainingAttributes()) {
    attributes->push_back(std::move(spec));
  }
}

ModelType Trees(std::string name, Booster booster, ModelTask task, bool forest, std::string doc) {
  ModelType type;
  type.name = std::move(name);
  type.family = ModelFamily::kTrees;
  type.task = task;
  type.doc = std::move(doc);
  AppendLearning(task, &type.attributes);
  if (booster == Booster::kLinear) {
    AppendLinear(&type.attributes);
  } else {
    AppendTree(forest, &type.attributes);
  }
  if (booster == Booster::kDart) {
    AppendDart(&type.attributes);
  }
  AppendTraining(forest, &type.attributes);
  if (forest) {
    // The values that scikit-learn's wrapper of XGBoost uses for its forests.
    SetDefault(&type, "eta", 1.0);
    SetDefault(&type, "reg_lambda", 1e-5);
  }
  if (booster == Booster::kLinear) {
    SetDefault(&type, "reg_lambda", 0.0);  // XGBoost's own default for gblinear
  }
  return type;
}

ModelType Named(ModelType type, std::string objective) {
  type.aliases = {"xgboost." + type.name};
  type.default_objective = std::move(objective);
  return type;
}

}  // namespace

std::vector<ModelType> TreeTypes() {
  return {
      Trees("xgboost.gbtree", Booster::kTree, ModelTask::kByObjective, false,
            "gradient-boosted trees; the objective says what is learnt"),
      Trees("xgboost.dart", Booster::kDart, ModelTask::kByObjective, false,
            "gradient-boosted trees with dropout of trees"),
      Trees("xgboost.gblinear", Booster::kLinear, ModelTask::kByObjective, false,
            "boosted linear model"),
      Named(Trees("XGBClassifier", Booster::kTree, ModelTask::kClassification, false,
                  "gradient-boosted trees, two or more classes"),
            "binary:logistic"),
      Named(Trees("XGBRegressor", Booster::kTree, ModelTask::kRegression, false,
                  "gradient-boosted trees for a number"),
            "reg:squarederror"),
      Named(Trees("XGBRFClassifier", Booster::kTree, ModelTask::kClassification, true,
                  "random forest, two or more classes"),
            "multi:softprob"),
      Named(Trees("XGBRFRegressor", Booster::kTree, ModelTask::kRegression, true,
                  "random forest for a number"),
            "reg:squarederror"),
      Named(Trees("XGBRanker", Booster::kTree, ModelTask::kRanking, false,
                  "gradient-boosted trees that order the rows of a query"),
            "rank:pairwise"),
  };
}

}  // namespace sluice::models
