#include <algorithm>
#include <map>
#include <utility>

#include "models/registry/registry_internal.h"

// Model types under the names that they have in SQLFlow and its model zoo, with the attributes and
// defaults of there, so that its statements run unchanged. What differs: docs/models.md.
namespace sluice::models {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;

ModelType Find(const std::vector<ModelType>& types, std::string_view name) {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [name](const ModelType& type) { return type.name == name; });
  return *found;
}

AttributeSpec* FindIn(std::vector<AttributeSpec>& attributes, std::string_view name) {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [name](const AttributeSpec& spec) { return spec.name == name; });
  return found == attributes.end() ? nullptr : &*found;
}

// `further`: SQLFlow's name of an attribute of ours.
void AddNames(ModelType* type, const Names& further) {
  for (const auto& [theirs, ours] : further) {
    FindIn(type->attributes, ours)->aliases.push_back(theirs);
  }
}

AttributeSpec Unused(AttributeSpec spec) {
  spec.doc = "taken over from SQLFlow, no effect: " + spec.doc;
  return WithoutEffect(std::move(spec));
}

ModelType BoostedTrees(ModelType type, bool classification) {
  type.name = classification ? "BoostedTreesClassifier" : "BoostedTreesRegressor";
  type.aliases.clear();
  type.doc += ", by TensorFlow's names";
  AddNames(&type, {{"model.n_trees", "train.num_boost_round"},
                   {"model.max_depth", "max_depth"},
                   {"model.learning_rate", "eta"},
                   {"model.l1_regularization", "reg_alpha"},
                   {"model.l2_regularization", "reg_lambda"},
                   {"model.tree_complexity", "gamma"},
                   {"model.min_node_weight", "min_child_weight"}});
  SetDefault(&type, "eta", 0.1);
  if (classification) {
    AddNames(&type, {{"model.n_classes", "num_class"}});
  }
  for (AttributeSpec& unused : std::vector{
           Integer("model.n_batches_per_layer", {}, AtLeast(1), "a layer sees all rows"),
           Flag("model.center_bias", {}, "the first prediction is base_score"),
           Text("model.pruning_mode", {}, {"none", "pre", "post"}, "gamma prunes"),
           Number("model.quantile_sketch_epsilon", {}, Between(0, 1), "max_bin sets the bins"),
           Flag("model.train_in_memory", {}, "trees always see all rows")}) {
    type.attributes.push_back(Unused(std::move(unused)));
  }
  return type;
}

ModelType Zoo(ModelType type, const std::string& name, std::vector<double> hidden_units) {
  type.name = name;
  type.aliases = {"sqlflow_models." + name};
  type.doc += ", with the model zoo's layers";
  SetDefault(&type, "model.hidden_units", std::move(hidden_units));
  return type;
}

// The zoo searches an architecture of layers of this width; here it is a network beside a linear
// model whose epochs are chosen on validation rows.
ModelType Auto(ModelType type, bool classification) {
  type.name = classification ? "AutoClassifier" : "AutoRegressor";
  type.aliases = {"sqlflow_models." + type.name};
  type.doc += ", in place of the model zoo's search of layers";
  SetDefault(&type, "model.dnn_hidden_units", std::vector<double>{50, 50});
  AddNames(&type, {{"model.layer_size", "model.dnn_hidden_units"},
                   {"model.optimizer", "model.dnn_optimizer"},
                   {"model.activation_fn", "model.dnn_activation_fn"}});
  FindIn(type.attributes, "model.dnn_hidden_units")->or_number = true;  // one layer of that width
  for (AttributeSpec& unused :
       std::vector{Number("model.complexity_penalty", {}, AtLeast(0), "no layers are searched"),
                   Integer("model.search_every_n_steps", {}, AtLeast(1), "no layers are searched"),
                   Integer("model.max_iterations", {}, AtLeast(1), "no layers are searched")}) {
    type.attributes.push_back(Unused(std::move(unused)));
  }
  return type;
}

}  // namespace

std::vector<ModelType> SqlflowTypes(const std::vector<ModelType>& ours) {
  std::vector<ModelType> types;
  for (const bool classification : {true, false}) {
    const std::string suffix = classification ? "Classifier" : "Regressor";
    types.push_back(BoostedTrees(Find(ours, "XGB" + suffix), classification));
    types.push_back(Auto(Find(ours, "DNNLinearCombined" + suffix), classification));
  }
  ModelType functional =
      Zoo(Find(ours, "DNNClassifier"), "dnnclassifier_functional_model", {128, 64});
  functional.attributes.push_back(
      Unused(Number("model.learning_rate", {}, AtLeast(0), "optimizer.learning_rate is the rate")));
  types.push_back(std::move(functional));
  types.push_back(Zoo(Find(ours, "DNNClassifier"), "RawDNNClassifier", {100, 100}));
  return types;
}

}  // namespace sluice::models
