#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/ubjson_reader_internal.h"

// libxgboost trusts a saved model: an index out of range crashes it, when loading or at the first
// prediction. So every number that it will use as an index, a size or a divisor is checked against
// the plan before libxgboost sees the bytes.
namespace sluice::models {
namespace {

// Training that continues from a tree recurses into it; no grown tree is as deep as this.
constexpr int32_t kDeepestTree = 1 << 14;
// Limit of parameters in an object, and of attributes: libxgboost writes about twenty at most.
constexpr int kMaxParameters = 256;
// libxgboost's mark in the split of a node that was pruned.
constexpr uint32_t kDeletedSplit = 0x7fffffffU;

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  T value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()
             ? std::optional<T>(value)
             : std::nullopt;
}

// The arrays of one tree, as views into the bytes.
struct TreeArrays {
  std::string_view base_weights, loss_changes, split_conditions, sum_hessian;
  std::string_view left_children, right_children, parents, split_indices;
  std::string_view default_left, split_type;
  bool wide_indices = false;
  int64_t id = -1;
  int64_t nodes = -1;
  int64_t deleted = -1;

  int32_t Left(int32_t node) const { return At(left_children, node); }
  int32_t Right(int32_t node) const { return At(right_children, node); }
  int32_t Parent(int32_t node) const { return At(parents, node); }
  uint32_t Split(int32_t node) const { return static_cast<uint32_t>(At(split_indices, node)); }
  bool DefaultLeft(int32_t node) const { return default_left[static_cast<size_t>(node)] != 0; }
  float Condition(int32_t node) const { return std::bit_cast<float>(At(split_conditions, node)); }

 private:
  static int32_t At(std::string_view array, int32_t node) {
    return UbjsonReader::Load<int32_t>(array, static_cast<size_t>(node));
  }
};

class BoosterCheck {
 public:
  BoosterCheck(std::string_view bytes, const BoostingParameters& parameters, size_t columns)
      : in_(bytes), parameters_(parameters), columns_(columns) {}

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
  void TreeParameters(TreeArrays* tree);
  void CheckTree(const TreeArrays& tree);
  void CheckNode(const TreeArrays& tree, int32_t node);
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
  void RequireIn(const TreeArrays& tree, bool holds, std::string_view what) {
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
  std::vector<std::pair<int32_t, int32_t>> to_visit_;  // node and its depth
  std::vector<bool> visited_;
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
  TreeArrays tree;
  int arrays = 0;
  const auto take = [&](std::string_view* array, char type, size_t width) {
    ++arrays;
    *array = in_.Typed(type, width);
  };
  in_.Object([&](std::string_view name) {
    if (name == "base_weights") {
      take(&tree.base_weights, 'd', sizeof(float));
    } else if (name == "categories" || name == "categories_nodes") {
      // For our trees an id is a number like any other: no split is by category.
      Require(in_.Typed('l', sizeof(int32_t)).empty(), "it splits by categories");
    } else if (name == "categories_segments" || name == "categories_sizes") {
      Require(in_.Typed('L', sizeof(int64_t)).empty(), "it splits by categories");
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
    CheckTree(tree);
  }
}

void BoosterCheck::TreeParameters(TreeArrays* tree) {
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

void BoosterCheck::CheckTree(const TreeArrays& tree) {
  const auto nodes = static_cast<size_t>(tree.nodes);
  bool whole = tree.nodes > 0;
  for (const std::string_view array :
       {tree.base_weights, tree.loss_changes, tree.split_conditions, tree.sum_hessian,
        tree.left_children, tree.right_children, tree.parents, tree.split_indices}) {
    whole = whole && array.size() == nodes * sizeof(int32_t);
  }
  RequireIn(tree, whole && tree.default_left.size() == nodes && tree.split_type.size() == nodes,
            fmt::format("its arrays do not have {} nodes", tree.nodes));
  RequireIn(tree, tree.split_type.find_first_not_of('\0') == std::string_view::npos,
            "it splits by categories");
  if (!in_.ok()) {
    return;
  }
  visited_.assign(nodes, false);
  to_visit_.assign(1, {0, 0});
  visited_[0] = true;
  size_t reached = 0;
  while (in_.ok() && !to_visit_.empty()) {
    const auto [node, depth] = to_visit_.back();
    to_visit_.pop_back();
    ++reached;
    CheckNode(tree, node);
    for (const int32_t child : {tree.Left(node), tree.Right(node)}) {
      if (!in_.ok() || tree.Left(node) < 0) {
        break;  // a leaf
      }
      const bool fresh = child > 0 && child < tree.nodes && !visited_[static_cast<size_t>(child)];
      RequireIn(tree, fresh && tree.Parent(child) == node && depth < kDeepestTree,
                fmt::format("node {} has no child {}", node, child));
      if (fresh) {
        visited_[static_cast<size_t>(child)] = true;
        to_visit_.emplace_back(child, depth + 1);
      }
    }
  }
  for (int32_t node = 1; in_.ok() && node < tree.nodes; ++node) {
    const bool deleted = tree.Split(node) == kDeletedSplit && tree.DefaultLeft(node);
    RequireIn(tree, deleted != visited_[static_cast<size_t>(node)],
              fmt::format("node {} belongs to no other", node));
    RequireIn(tree, tree.Parent(node) >= 0 && tree.Parent(node) < tree.nodes,
              fmt::format("node {} has no parent {}", node, tree.Parent(node)));
  }
  RequireIn(tree, tree.deleted >= 0 && nodes - reached == static_cast<size_t>(tree.deleted),
            "it does not have as many nodes as it says");
}

void BoosterCheck::CheckNode(const TreeArrays& tree, int32_t node) {
  if (tree.Left(node) < 0) {  // a leaf; libxgboost reads both of its children
    for (const int32_t child : {tree.Left(node), tree.Right(node)}) {
      RequireIn(tree, child == -1, fmt::format("node {} has no child {}", node, child));
    }
    RequireIn(tree, std::isfinite(tree.Condition(node)),
              fmt::format("leaf {} is not a finite number", node));
    return;
  }
  RequireIn(tree, tree.Split(node) < columns_,
            fmt::format("node {} splits column {} of {}", node, tree.Split(node), columns_));
  RequireIn(tree, !std::isnan(tree.Condition(node)),
            fmt::format("node {} splits at no number", node));
}

}  // namespace

Status CheckBooster(std::string_view bytes, const BoostingParameters& parameters, size_t columns) {
  return BoosterCheck(bytes, parameters, columns).Run();
}

}  // namespace sluice::models
