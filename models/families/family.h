#pragma once

#include <string>
#include <vector>

#include "models/graph/graph_writer.h"
#include "models/registry/registry_internal.h"

// A family of networks: its attributes, and the builder of its graph. Each family is one file of
// this folder, such as deep_fm.cc, with one function, Family DeepFm(); the build finds it.
namespace sluice::models::families {

struct Family {
  std::string name;   // "DeepFM": there are a DeepFMClassifier and a DeepFMRegressor
  std::string alias;  // another name of the types; "": none
  std::string doc;    // "a factorization machine beside hidden layers"
  std::vector<AttributeSpec>
      attributes;  // specific to the family; all types also have those of label and training
  // COLUMN ... FOR tower: each feature is of one of them; empty: there is no such division.
  std::vector<std::string> towers;
  // Of the classifier, in addition to those of every network; of two classes, and the graph's own.
  std::vector<std::string> losses;
  GraphBuilder build;
  double learning_rate = 0;  // of Adam, unless the statement says another one; 0: Adam's own
};

// Attributes common to several families.
AttributeSpec EmbeddingWidth(const std::string& name, int64_t chosen, std::string doc);
AttributeSpec Penalty();                    // model.l2
std::vector<AttributeSpec> HiddenLayers();  // read by GraphWriter::Hidden

// The types of all families in this folder.
std::vector<ModelType> Types();
// The types of one family.
std::vector<ModelType> TypesOf(const Family& family);

}  // namespace sluice::models::families
