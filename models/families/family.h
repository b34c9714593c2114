#pragma once

#include <string>
#include <vector>

#include "models/graph/graph_writer.h"
#include "models/registry/registry_internal.h"

// A family of networks: its attributes, and the builder of its graph. Each is one file of this
// folder, deep_fm.cc, with one function, Family DeepFm(); the build finds it there.
namespace sluice::models::families {

struct Family {
  std::string name;   // "DeepFM": there are a DeepFMClassifier and a DeepFMRegressor
  std::string alias;  // "": none; the types are called so, too
  std::string doc;    // "a factorization machine beside hidden layers"
  std::vector<AttributeSpec> attributes;  // of its own; all types have the label's and training's
  GraphBuilder build;
};

// Attributes that several families have.
AttributeSpec EmbeddingWidth(const std::string& name, int64_t chosen, std::string doc);
AttributeSpec Penalty();                    // model.l2
std::vector<AttributeSpec> HiddenLayers();  // what GraphWriter::Hidden reads

// The types of all families in this folder.
std::vector<ModelType> Types();
// Those of one.
std::vector<ModelType> TypesOf(const Family& family);

}  // namespace sluice::models::families
