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
  std::string because;  // one line: the choice, its reason, how to choose otherwise
  std::string shape;    // of the table: "400 rows, 4 columns, 2 classes of income"
  // The types that are worth trying, including `type`, the cheapest to train first; empty if the
  // statement asks for something that only some of them have.
  std::vector<const models::ModelType*> open = {};
};

// Chooses the short form's model type: one that supports every attribute, COLUMN target and column
// function of the statement; an error names those that no type supports together. Among several,
// trees win on tables of up to some millions of rows; for a table of mostly free text it is a
// linear model, which learns its words best; for a larger table, or columns with huge vocabularies,
// a wide-and-deep network, which learns from a stream. Pure.
Result<ModelChoice> ChooseModelType(const parser::TrainStatement& statement,
                                    const std::string& label, bool classification,
                                    double label_values, const Schema& schema,
                                    const catalog::SelectStatistics& statistics);

// The columns of whole numbers that name things, of which each occurs in several rows: users,
// films.
std::vector<std::string> Identifiers(const Schema& schema, const std::string& label,
                                     const catalog::SelectStatistics& statistics);

}  // namespace sluice::planner
