#pragma once

#include <cmath>
#include <string>

#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "tests/catalog/both_databases.h"

namespace sluice::catalog {

class StoresTest : public BothDatabases {
 protected:
  static ModelVersion Model(const std::string& name) {
    ModelVersion model;
    model.name = name;
    model.type = "DNNClassifier";
    model.statement = "SELECT 'it''s' ...";
    model.plan = std::string("\x00\x01plan\xff", 7);
    model.metrics = {{"auc", 0.91234567890123456}, {"accuracy", 1}, {"loss", std::nan("")}};
    model.rows = 1234;
    model.lineage = R"({"seed": 7})";
    return model;
  }

  bool HasTables() {
    return !Select(postgres() ? "SELECT 1 FROM pg_namespace WHERE nspname = 'sluice'"
                              : "SELECT 1 FROM sqlite_schema WHERE name LIKE 'sluice%'")
                .empty();
  }
  std::string Table(const std::string& name) { return (postgres() ? "sluice." : "sluice_") + name; }
};

}  // namespace sluice::catalog
