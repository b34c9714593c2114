#pragma once

#include "models/model.pb.h"
#include "planner/attributes.h"
#include "planner/bind_train_internal.h"

// Attributes and label into a ModelSpec; only .cc files of this folder include this.
namespace sluice::planner {

// A network: its structure, its loss, its optimizers. Arguments that the chosen optimizer does not
// have, too few classes and the like are errors, all of them.
Status FillNetworkSpec(const BoundTrain& bound, models::ModelSpec* spec);

// Boosted trees: what XGBoost is told. The objective follows the label where none is given.
Status FillTreeSpec(const BoundTrain& bound, models::ModelSpec* spec);

// Appends an attribute, or replaces the one of that name.
void SetAttribute(std::string_view name, const TypedValue& value,
                  google::protobuf::RepeatedPtrField<models::Attribute>* attributes);
const models::Attribute* FindIn(const google::protobuf::RepeatedPtrField<models::Attribute>& list,
                                std::string_view name);

}  // namespace sluice::planner
