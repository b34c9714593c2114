#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"
#include "planner/attributes.h"

namespace sluice::planner {

// tune.NAME = [low, high], or [one, or, another, or, a third].
struct TunedAttribute {
  std::string name;  // the tuned attribute
  std::vector<parser::AttributeValue> values;
  Span span;
  Span value_span;
};

// A TRAIN's request to try several models, separated from the training itself.
struct ContestRequest {
  parser::TrainStatement training;  // without auto.* and tune.*
  AttributeSet automatic;           // auto.*
  AttributeSet search;              // tune.trials, tune.seconds ...
  std::vector<TunedAttribute> tuned;
  Span automatic_span;  // of the first auto.*; invalid: there is none
  Span search_span;     // of the first tune.*
};
// Reports every mistake in auto.* and tune.* that can be found without the data; `request` has the
// correct ones even if there are errors.
Status ReadContestRequest(const parser::TrainStatement& statement, ContestRequest* request);

}  // namespace sluice::planner
