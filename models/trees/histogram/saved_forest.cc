#include "models/trees/histogram/saved_forest.h"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/big_endian.h"
#include "models/trees/ubjson_reader_internal.h"

namespace sluice::models::histogram {
namespace {

// The parent of a root in XGBoost's format.
constexpr int32_t kNoParent = std::numeric_limits<int32_t>::max();

// Writes what libxgboost writes. Members of an object must be given in ascending order.
class UbjsonWriter {
 public:
  void Open() { out_ += '{'; }
  void Close() { out_ += '}'; }
  void Name(std::string_view name) { Sized(name); }
  void Text(std::string_view text) {
    out_ += 'S';
    Sized(text);
  }
  void Texts(std::initializer_list<std::pair<std::string_view, std::string>> members) {
    Open();
    for (const auto& [name, text] : members) {
      Name(name);
      Text(text);
    }
    Close();
  }
  void OpenArray(size_t count) {  // which no Close ends
    out_ += "[#";
    Length(count);
  }
  void Integer(int64_t number) {
    if (number <= INT8_MAX) {
      out_ += 'i';
      AppendBigEndian(static_cast<int8_t>(number), &out_);
    } else if (number <= INT16_MAX) {
      out_ += 'I';
      AppendBigEndian(static_cast<int16_t>(number), &out_);
    } else {
      out_ += 'l';
      AppendBigEndian(static_cast<int32_t>(number), &out_);
    }
  }
  template <typename Number>
  void Typed(std::string_view name, char type, const std::vector<Number>& numbers) {
    Name(name);
    out_ += "[$";
    out_ += type;
    out_ += '#';
    Length(numbers.size());
    for (const Number number : numbers) {
      AppendBigEndian<Number>(number, &out_);
    }
  }
  // number(node) of each node of a tree.
  template <typename Number, typename NumberOf>
  void Typed(std::string_view name, char type, const Tree& tree, NumberOf number) {
    std::vector<Number> numbers;
    for (const Tree::Node& node : tree.nodes) {
      numbers.push_back(number(node));
    }
    Typed(name, type, numbers);
  }
  void Bytes(std::string_view bytes) { out_ += bytes; }
  std::string Take() { return std::exchange(out_, {}); }

 private:
  void Length(size_t length) {
    out_ += 'L';
    AppendBigEndian(static_cast<int64_t>(length), &out_);
  }
  void Sized(std::string_view text) {
    Length(text.size());
    out_ += text;
  }

  std::string out_;
};

int32_t BitsOf(float number) {
  return std::bit_cast<int32_t>(number);
}

// The categories that go right at each node that parts categories.
void WriteCategories(const Tree& tree, const CutPoints& cuts, UbjsonWriter* out) {
  std::vector<int32_t> categories, nodes;
  std::vector<int64_t> segments, sizes;
  for (size_t n = 0; n < tree.nodes.size(); ++n) {
    const SplitRule& split = tree.nodes[n].split;
    if (split.right_bins.empty()) {
      continue;
    }
    nodes.push_back(static_cast<int32_t>(n));
    segments.push_back(static_cast<int64_t>(categories.size()));
    sizes.push_back(static_cast<int64_t>(split.right_bins.size()));
    for (const uint32_t bin : split.right_bins) {
      categories.push_back(cuts.Category(split.column, bin));
    }
  }
  out->Typed("categories", 'l', categories);
  out->Typed("categories_nodes", 'l', nodes);
  out->Typed("categories_segments", 'L', segments);
  out->Typed("categories_sizes", 'L', sizes);
}

// Passes over any value; returns its bytes.
std::string_view Skip(UbjsonReader* in) {
  const std::string_view from = in->rest();
  switch (in->Next()) {
    case '{':
      in->Object([&](std::string_view) { Skip(in); });
      break;
    case '[':
      in->Next(1) == '$' ? in->SkipTyped() : void(in->Array([&](size_t) { Skip(in); }));
      break;
    case 'S':
      in->Text();
      break;
    case 'd':
      in->Number();
      break;
    default:
      in->Integer();
  }
  return from.substr(0, from.size() - in->rest().size());
}

}  // namespace

void SavedForest::Add(const Tree& tree, const CutPoints& cuts, size_t output) {
  using Node = Tree::Node;
  const auto leaf = [](const Node& node) { return node.left < 0; };
  const auto by_category = [](const Node& node) { return !node.split.right_bins.empty(); };
  UbjsonWriter out;
  out.Open();
  out.Typed<int32_t>("base_weights", 'd', tree, [&](const Node& node) {
    return BitsOf(leaf(node) ? node.value : node.weight);
  });
  WriteCategories(tree, cuts, &out);
  out.Typed<int8_t>("default_left", 'U', tree, [&](const Node& node) {
    return static_cast<int8_t>(!leaf(node) && node.split.missing_left ? 1 : 0);
  });
  out.Name("id");
  out.Integer(static_cast<int64_t>(trees_.size()));
  out.Typed<int32_t>("left_children", 'l', tree, [](const Node& node) { return node.left; });
  out.Typed<int32_t>("loss_changes", 'd', tree, [](const Node& node) { return BitsOf(node.gain); });
  out.Typed<int32_t>("parents", 'l', tree,
                     [](const Node& node) { return node.parent < 0 ? kNoParent : node.parent; });
  out.Typed<int32_t>("right_children", 'l', tree,
                     [&](const Node& node) { return leaf(node) ? -1 : node.left + 1; });
  out.Typed<int32_t>("split_conditions", 'd', tree, [&](const Node& node) {
    return BitsOf(leaf(node)          ? node.value
                  : by_category(node) ? 0
                                      : cuts.Threshold(node.split.column, node.split.bin));
  });
  out.Typed<int32_t>("split_indices", 'l', tree,
                     [](const Node& node) { return static_cast<int32_t>(node.split.column); });
  out.Typed<int8_t>("split_type", 'U', tree, [&](const Node& node) {
    return static_cast<int8_t>(by_category(node) ? 1 : 0);
  });
  out.Typed<int32_t>("sum_hessian", 'd', tree,
                     [](const Node& node) { return BitsOf(node.hessian); });
  out.Name("tree_param");
  out.Texts({{"num_deleted", "0"},
             {"num_feature", std::to_string(columns_)},
             {"num_nodes", std::to_string(tree.nodes.size())},
             {"size_leaf_vector", "0"}});
  out.Close();
  trees_.push_back(out.Take());
  outputs_of_trees_.push_back(static_cast<int64_t>(output));
}

void SavedForest::KeepRounds(size_t count) {
  trees_.resize(std::min(trees_.size(), count * outputs_ * parallel_trees_));
  outputs_of_trees_.resize(trees_.size());
}

std::string SavedForest::Write(const std::string& objective,
                               const Objective::Stored& settings) const {
  UbjsonWriter out;
  out.Open();
  out.Name("learner");
  out.Open();
  out.Name("attributes");
  out.Texts({});
  out.Name("feature_names");
  out.OpenArray(0);
  out.Name("feature_types");
  out.OpenArray(0);
  out.Name("gradient_booster");
  out.Open();
  out.Name("model");
  out.Open();
  out.Name("gbtree_model_param");
  out.Texts({{"num_parallel_tree", std::to_string(parallel_trees_)},
             {"num_trees", std::to_string(trees_.size())},
             {"size_leaf_vector", "0"}});
  out.Name("tree_info");
  out.OpenArray(trees_.size());
  for (const int64_t output : outputs_of_trees_) {
    out.Integer(output);
  }
  out.Name("trees");
  out.OpenArray(trees_.size());
  for (const std::string& tree : trees_) {
    out.Bytes(tree);
  }
  out.Close();
  out.Name("name");
  out.Text("gbtree");
  out.Close();
  out.Name("learner_model_param");
  out.Texts({{"base_score", base_score_},
             {"boost_from_average", "0"},
             {"num_class", outputs_ > 1 ? std::to_string(outputs_) : "0"},
             {"num_feature", std::to_string(columns_)},
             {"num_target", "1"}});
  out.Name("objective");
  out.Open();
  out.Name("name");
  out.Text(objective);
  if (!settings.name.empty()) {
    out.Name(settings.name);
    out.Open();
    for (const auto& [name, text] : settings.settings) {
      out.Name(name);
      out.Text(text);
    }
    out.Close();
  }
  out.Close();
  out.Close();
  out.Name("version");
  out.OpenArray(3);
  for (const int64_t part : {1, 7, 4}) {
    out.Integer(part);
  }
  out.Close();
  return out.Take();
}

Result<SavedForest> SavedForest::Read(std::string_view bytes, size_t columns, size_t outputs) {
  SavedForest forest("", columns, outputs, 1);
  UbjsonReader in(bytes);
  const auto read_model = [&](std::string_view name) {
    if (name == "gbtree_model_param") {
      in.Object([&](std::string_view parameter) {
        const std::string text(in.Text());
        if (parameter == "num_parallel_tree") {
          forest.parallel_trees_ = static_cast<size_t>(std::stoul(text));
        }
      });
    } else if (name == "tree_info") {
      in.Array([&](size_t) { forest.outputs_of_trees_.push_back(in.Integer()); });
    } else {
      in.Array([&](size_t) { forest.trees_.emplace_back(Skip(&in)); });
    }
  };
  const auto read_learner = [&](std::string_view name) {
    if (name == "gradient_booster") {
      in.Object([&](std::string_view part) {
        part == "model" ? in.Object(read_model) : void(Skip(&in));
      });
    } else if (name == "learner_model_param") {
      in.Object([&](std::string_view parameter) {
        const std::string_view text = in.Text();
        if (parameter == "base_score") {
          forest.base_score_ = text;
        }
      });
    } else {
      Skip(&in);
    }
  };
  in.Object([&](std::string_view name) {
    name == "learner" ? in.Object(read_learner) : void(Skip(&in));
  });
  if (!in.ok()) {
    return Internal("XGBoost saves models in a form that is not known here: " + in.problem());
  }
  return forest;
}

}  // namespace sluice::models::histogram
