#pragma once

#include "models/model.pb.h"
#include "planner/attributes.h"
#include "planner/bind_train_internal.h"

// Turns attributes and label into a ModelSpec; only .cc files of this folder include this.
namespace sluice::planner {

// For a network: its structure, its loss, its optimizers. Reports all errors, such as arguments
// that the chosen optimizer lacks, or too few classes.
Status FillNetworkSpec(const BoundTrain& bound, models::ModelSpec* spec);

// For boosted trees: XGBoost's parameters. The objective follows from the label unless it is given.
Status FillTreeSpec(const BoundTrain& bound, models::ModelSpec* spec);

// Appends an attribute, or replaces the one with that name.
void SetAttribute(std::string_view name, const TypedValue& value,
                  google::protobuf::RepeatedPtrField<models::Attribute>* attributes);
const models::Attribute* FindIn(const google::protobuf::RepeatedPtrField<models::Attribute>& list,
                                std::string_view name);

}  // namespace sluice::planner
