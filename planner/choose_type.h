#pragma once

#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/registry/registry.h"
#include "parser/ast.h"

namespace sluice::catalog {
struct SelectStatistics;
}

namespace sluice::planner {

struct ModelChoice {
  const models::ModelType* type = nullptr;
  std::string because;  // one line for the user: what, why, and how to choose another
  std::string shape;    // of the table: "400 rows, 4 columns, 2 classes of income"
  // The types that are worth trying too, with `type`, the cheapest to train first; empty where the
  // statement asks for what only some of them have.
  std::vector<const models::ModelType*> open = {};
};

// The short form's model type: one that obeys every attribute, COLUMN target and column function
// of the statement; an error names those that no type has together. Of several that do, trees win
// on tables of up to some millions of rows; a table that is mostly free text is for a linear model,
// which learns its words best; one with more, or columns with huge vocabularies,
// is for a wide-and-deep network, which learns as it streams. Pure.
Result<ModelChoice> ChooseModelType(const parser::TrainStatement& statement,
                                    const std::string& label, bool classification,
                                    double label_values, const Schema& schema,
                                    const catalog::SelectStatistics& statistics);

}  // namespace sluice::planner
