#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/saved_tree_internal.h"
#include "models/trees/ubjson_reader_internal.h"

// libxgboost trusts a saved model: an index out of range crashes it, when loading or at the first
// prediction. So every number that it will use as an index, a size or a divisor is checked against
// the plan before libxgboost sees the bytes. (The nodes of a tree: saved_tree.cc.)
namespace sluice::models {
namespace {

// Limit of parameters in an object, and of attributes: libxgboost writes about twenty at most.
constexpr int kMaxParameters = 256;

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  T value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()
             ? std::optional<T>(value)
             : std::nullopt;
}

class BoosterCheck {
 public:
  BoosterCheck(std::string_view bytes, const BoostingParameters& parameters, size_t columns)
      : in_(bytes), parameters_(parameters), columns_(columns), tree_check_(columns) {}

  Status Run();

 private:
  using Booster = BoostingParameters::Booster;

  void Learner();
  void ModelParameters();
  void Objective();
  void GradientBooster();
  void Forest();
  void Linear();
  void Trees();
  void Tree(size_t position);
  void TreeParameters(SavedTree* tree);
  void Version();
  void Unknown(std::string_view name) {
    in_.Fail(fmt::format("it has a member '{:.40}', which XGBoost does not write", name));
  }
  // Calls parameter(name, text) for each.
  template <typename Parameter>
  void Texts(Parameter parameter) {
    int count = 0;
    in_.Object([&](std::string_view name) {
      const std::string_view text = in_.Text();
      if (++count > kMaxParameters) {
        return in_.Fail("it has too many parameters");
      }
      parameter(name, text);
    });
  }
  void Nothing() {  // an array without elements
    in_.Array([&](size_t) { in_.Fail("an array is not empty"); });
  }
  void Require(bool holds, std::string_view what) {
    if (!holds) {
      in_.Fail(std::string(what));
    }
  }
  // Reports a fault of a tree.
  void RequireIn(const SavedTree& tree, bool holds, std::string_view what) {
    if (!holds) {
      in_.Fail(fmt::format("tree {}: {}", tree.id, what));
    }
  }
  size_t groups() const { return parameters_.raw_outputs; }

  UbjsonReader in_;
  const BoostingParameters& parameters_;
  size_t columns_;
  bool learner_ = false;
  bool booster_ = false;
  bool objective_ = false;
  int sizes_ = 0;  // number of parameters that ModelParameters must have found
  size_t trees_ = 0;
  size_t tree_groups_ = 0;
  std::optional<int32_t> declared_trees_;
  std::optional<int32_t> parallel_trees_;
  SavedTreeCheck tree_check_;
};

Status BoosterCheck::Run() {
  in_.Object([&](std::string_view name) {
    if (name == "learner") {
      Learner();
    } else if (name == "version") {
      Version();
    } else {
      Unknown(name);
    }
  });
  Require(learner_, "the learner is missing");
  Require(in_.AtEnd(), "there are bytes behind its end");
  if (!in_.ok()) {
    return InvalidArgument(fmt::format("the stored model is damaged: {}", in_.problem()))
        .Hint("train the model again, or roll back to an older version");
  }
  return OkStatus();
}

void BoosterCheck::Version() {
  const size_t parts = in_.Array([&](size_t) { in_.Integer(); });
  Require(parts == 3, "its version does not have three parts");
}

void BoosterCheck::Learner() {
  learner_ = true;
  bool attributes = false;
  in_.Object([&](std::string_view name) {
    if (name == "attributes") {
      attributes = true;
      Texts([](std::string_view, std::string_view) {});
    } else if (name == "feature_names" || name == "feature_types") {
      Nothing();  // we do not name columns
    } else if (name == "gradient_booster") {
      GradientBooster();
    } else if (name == "learner_model_param") {
      ModelParameters();
    } else if (name == "objective") {
      Objective();
    } else {
      Unknown(name);
    }
  });
  Require(attributes && booster_ && objective_ && sizes_ == 3, "a part of the learner is missing");
}

void BoosterCheck::ModelParameters() {
  // libxgboost's number of classes is 0 unless the objective has several classes.
  const size_t classes = parameters_.objective.starts_with("multi:") ? groups() : 0;
  Texts([&](std::string_view name, std::string_view text) {
    if (name == "num_feature") {
      ++sizes_;
      Require(ParseWhole<uint32_t>(text) == columns_,
              fmt::format("it has '{:.40}' columns, its plan {}", text, columns_));
    } else if (name == "num_class") {
      ++sizes_;
      Require(ParseWhole<uint32_t>(text) == classes,
              fmt::format("it has '{:.40}' classes, its plan {}", text, classes));
    } else if (name == "num_target") {
      Require(text == "1", "it predicts more than one target");
    } else if (name == "base_score") {
      ++sizes_;
      float score = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), score);
      Require(parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() &&
                  std::isfinite(score),
              "its base score is not a number");
    }
  });
}

void BoosterCheck::Objective() {
  in_.Object([&](std::string_view name) {
    if (name != "name") {
      return Texts([&](std::string_view parameter, std::string_view text) {
        Require(parameter != "num_class" || ParseWhole<uint32_t>(text) == groups() ||
                    (groups() == 1 && text == "0"),
                "its objective has another number of classes than its plan");
      });
    }
    objective_ = true;
    const std::string_view objective = in_.Text();
    Require(objective == parameters_.objective ||
                (objective == "reg:squarederror" && parameters_.objective == "reg:linear"),
            fmt::format("its objective is '{:.40}', that of its plan '{}'", objective,
                        parameters_.objective));
  });
}

void BoosterCheck::GradientBooster() {
  booster_ = true;
  bool model = false;
  size_t drops = 0;
  std::string_view booster;
  in_.Object([&](std::string_view name) {
    if (name == "name") {
      booster = in_.Text();
    } else if (name == "model" && parameters_.booster != Booster::kDart) {
      model = true;
      parameters_.booster == Booster::kLinear ? Linear() : Forest();
    } else if (name == "gbtree" && parameters_.booster == Booster::kDart) {
      in_.Object([&](std::string_view member) {
        if (member == "model") {
          model = true;
          Forest();
        } else if (member == "name") {
          Require(in_.Text() == "gbtree", "the trees of its dart booster are of another kind");
        } else {
          Unknown(member);
        }
      });
    } else if (name == "weight_drop" && parameters_.booster == Booster::kDart) {
      drops = in_.Array(
          [&](size_t) { Require(std::isfinite(in_.Number()), "a tree's share is not a number"); });
    } else {
      Unknown(name);
    }
  });
  const std::string_view wanted = parameters_.booster == Booster::kLinear ? "gblinear"
                                  : parameters_.booster == Booster::kDart ? "dart"
                                                                          : "gbtree";
  Require(booster == wanted, fmt::format("it is a '{:.40}', its plan a {}", booster, wanted));
  Require(model, "its booster has no model");
  Require(parameters_.booster != Booster::kDart || drops == trees_, "not every tree has its share");
}

void BoosterCheck::Linear() {
  bool weights = false;
  in_.Object([&](std::string_view name) {
    if (name == "boosted_rounds") {
      const int64_t rounds = in_.Integer();
      Require(rounds >= 0 && rounds <= std::numeric_limits<int32_t>::max(),
              "its number of rounds is out of range");
    } else if (name == "weights") {
      weights = true;
      const size_t count = in_.Typed('d', sizeof(float)).size() / sizeof(float);
      Require(count == (columns_ + 1) * groups(),
              fmt::format("it has {} weights for {} columns", count, columns_));
    } else {
      Unknown(name);
    }
  });
  Require(weights, "it has no weights");
}

void BoosterCheck::Forest() {
  in_.Object([&](std::string_view name) {
    if (name == "gbtree_model_param") {
      Texts([&](std::string_view parameter, std::string_view text) {
        if (parameter == "num_trees") {
          declared_trees_ = ParseWhole<int32_t>(text);
        } else if (parameter == "num_parallel_tree") {
          parallel_trees_ = ParseWhole<int32_t>(text);
        } else if (parameter == "size_leaf_vector") {
          Require(text == "0", "its leaves hold several numbers");
        }
      });
    } else if (name == "tree_info") {
      tree_groups_ = in_.Array([&](size_t) {
        const int64_t group = in_.Integer();
        Require(group >= 0 && static_cast<uint64_t>(group) < groups(),
                fmt::format("a tree is of class {} of {}", group, groups()));
      });
    } else if (name == "trees") {
      trees_ = in_.Array([&](size_t position) { Tree(position); });
    } else {
      Unknown(name);
    }
  });
  Require(declared_trees_.has_value() && *declared_trees_ >= 0 &&
              static_cast<size_t>(*declared_trees_) == trees_ && tree_groups_ == trees_,
          "it does not have as many trees as it says");
  Require(parallel_trees_.has_value() && *parallel_trees_ > 0 &&
              trees_ % (static_cast<size_t>(*parallel_trees_) * groups()) == 0,
          "its trees do not make whole rounds");
}

void BoosterCheck::Tree(size_t position) {
  SavedTree tree;
  int arrays = 0;
  const auto take = [&](std::string_view* array, char type, size_t width) {
    ++arrays;
    *array = in_.Typed(type, width);
  };
  in_.Object([&](std::string_view name) {
    if (name == "base_weights") {
      take(&tree.base_weights, 'd', sizeof(float));
    } else if (name == "categories") {
      tree.categories = in_.Typed('l', sizeof(int32_t));
    } else if (name == "categories_nodes") {
      tree.category_nodes = in_.Typed('l', sizeof(int32_t));
    } else if (name == "categories_segments") {
      tree.category_segments = in_.Typed('L', sizeof(int64_t));
    } else if (name == "categories_sizes") {
      tree.category_sizes = in_.Typed('L', sizeof(int64_t));
    } else if (name == "default_left") {
      take(&tree.default_left, 'U', 1);
    } else if (name == "id") {
      tree.id = in_.Integer();
    } else if (name == "left_children") {
      take(&tree.left_children, 'l', sizeof(int32_t));
    } else if (name == "loss_changes") {
      take(&tree.loss_changes, 'd', sizeof(float));
    } else if (name == "parents") {
      take(&tree.parents, 'l', sizeof(int32_t));
    } else if (name == "right_children") {
      take(&tree.right_children, 'l', sizeof(int32_t));
    } else if (name == "split_conditions") {
      take(&tree.split_conditions, 'd', sizeof(float));
    } else if (name == "split_indices") {
      take(&tree.split_indices, 'l', sizeof(int32_t));
    } else if (name == "split_type") {
      take(&tree.split_type, 'U', 1);
    } else if (name == "sum_hessian") {
      take(&tree.sum_hessian, 'd', sizeof(float));
    } else if (name == "tree_param") {
      TreeParameters(&tree);
    } else {
      Unknown(name);
    }
  });
  constexpr int kArrays = 10;
  RequireIn(tree, arrays == kArrays, "a part is missing");
  RequireIn(tree, tree.id >= 0 && static_cast<size_t>(tree.id) == position,
            "the trees are not in order");
  if (in_.ok()) {
    const std::string fault = tree_check_.FindFault(tree);
    RequireIn(tree, fault.empty(), fault);
  }
}

void BoosterCheck::TreeParameters(SavedTree* tree) {
  Texts([&](std::string_view name, std::string_view text) {
    if (name == "num_nodes") {
      tree->nodes = ParseWhole<int32_t>(text).value_or(-1);
    } else if (name == "num_deleted") {
      tree->deleted = ParseWhole<int32_t>(text).value_or(-1);
    } else if (name == "num_feature") {
      Require(ParseWhole<uint32_t>(text) == columns_, "a tree has other columns than its plan");
    } else if (name == "size_leaf_vector") {
      Require(text == "0", "its leaves hold several numbers");
    }
  });
}

}  // namespace

Status CheckBooster(std::string_view bytes, const BoostingParameters& parameters, size_t columns) {
  return BoosterCheck(bytes, parameters, columns).Run();
}

}  // namespace sluice::models
