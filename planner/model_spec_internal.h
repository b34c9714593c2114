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

// The attribute has an effect only if `other` has one of the allowed values; it has `chosen`.
Status NeedsChoice(const BoundTrain& bound, std::string_view name, std::string_view other,
                   std::string_view chosen, const std::vector<std::string>& allowed);
// A network's loss: whether it suits the label, and the attributes that only some losses have.
Status CheckLoss(const BoundTrain& bound, const std::string& loss);

// Appends an attribute, or replaces the one with that name.
void SetAttribute(std::string_view name, const TypedValue& value,
                  google::protobuf::RepeatedPtrField<models::Attribute>* attributes);
const models::Attribute* FindIn(const google::protobuf::RepeatedPtrField<models::Attribute>& list,
                                std::string_view name);

}  // namespace sluice::planner
