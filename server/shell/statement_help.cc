#include "server/shell/statement_help.h"

#include <fmt/core.h>

#include "base/letter_case.h"

namespace sluice::server {
namespace {

struct Topic {
  std::string_view name;
  std::string_view example;  // shown in the overview
  std::string_view syntax;
};

constexpr Topic kTopics[] = {
    {"TRAIN", "SELECT * FROM t LABEL y INTO m;                  the model type is chosen for you",
     R"(select LABEL column INTO model
select TO TRAIN type [WITH attribute = value, ...] [COLUMN ...] [LABEL column] [USING base]
  INTO model
SHOW MODEL TYPES lists the types, DESCRIBE MODEL TYPE t the attributes of one.
)"},
    {"CREATE MODEL", "CREATE MODEL m OPTIONS (label = y) AS SELECT * FROM t;",
     R"(CREATE [OR REPLACE] MODEL model [TRANSFORM (column, ...)]
  [OPTIONS (model_type = type, label = column, attribute = value, ...)] AS select
)"},
    {"PREDICT", "SELECT * FROM u TO PREDICT scored.y USING m;     writes table scored",
     R"(select TO PREDICT table.column [WITH attribute = value, ...] USING model   writes a table
select TO PREDICT USING model                                               rows are shown
)"},
    {"EVALUATE", "SELECT * FROM u TO EVALUATE m LABEL y;",
     "select TO EVALUATE model [WITH attribute = value, ...] [LABEL column] [INTO table]\n"},
    {"EXPLAIN", "EXPLAIN SELECT * FROM t LABEL y INTO m;          the plan; nothing runs",
     R"(EXPLAIN [(FORMAT JSON)] statement                                  its plan; nothing runs
EXPLAIN ANALYZE select LABEL column INTO model                     trains it, and tells its time
select TO EXPLAIN model [USING explainer] [INTO table]             why a model predicts so
)"},
    {"COLUMN", "SELECT ... COLUMN EMBEDDING(city, 8) LABEL y INTO m;",
     R"(COLUMN column, ... [FOR target]
A column is a name or DENSE, SPARSE, BUCKET, QUANTILE, CATEGORY_ID, CATEGORY_HASH, VOCABULARY,
CROSS, EMBEDDING, INDICATOR, NORMALIZE, STANDARDIZE, LOG, TEXT (...) of one.
)"},
    {"SHOW", "SHOW MODELS; SHOW MODEL m; SHOW JOBS; SHOW JOB 1;",
     R"(SHOW MODELS | SHOW MODEL model | SHOW TRAIN model | SHOW MODEL TYPES
SHOW JOBS [ALL | LIMIT n] | SHOW JOB n | SHOW CLUSTER
)"},
    {"DESCRIBE", "DESCRIBE MODEL m; DESCRIBE MODEL TYPE DNNClassifier;",
     "DESCRIBE MODEL model[:version] | DESCRIBE MODEL TYPE type\n"},
    {"ALTER MODEL", "ALTER MODEL m ROLLBACK;",
     "ALTER MODEL model PROMOTE version | ROLLBACK | RENAME TO model\n"},
    {"DROP MODEL", "DROP MODEL m:2;                                  one version",
     "DROP MODEL [IF EXISTS] model[:version]\n"},
    {"GRANT", "GRANT USAGE ON MODEL m TO ann;",
     R"(GRANT USAGE | INSPECT | ALL ON MODEL model TO role, ...
REVOKE USAGE | INSPECT | ALL ON MODEL model FROM role, ...
)"},
    {"EXPORT", "EXPORT MODEL m TO 'm.sluice';                    m.json: trees, for XGBoost",
     "EXPORT MODEL model[:version] [OVERWRITE] TO 'file.sluice' | 'file.json'\n"},
    {"IMPORT", "IMPORT MODEL FROM 'm.sluice' INTO copy;",
     "IMPORT MODEL FROM 'file.sluice' [INTO model]\n"},
    {"JOB", "WAIT JOB 1; CANCEL JOB 1;",
     "SHOW JOB n | WAIT JOB n | CANCEL JOB n | DROP JOB [IF EXISTS] n\n"},
    {"SET", "SET sluice.seed = 7;",
     R"(SET sluice.setting = value | DEFAULT
seed, local_cpus, in_process_work, progress, async, on_disconnect
)"},
};

}  // namespace

std::vector<std::string> StatementHelpTopics() {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) {
    names.emplace_back(topic.name);
  }
  return names;
}

Result<std::string> StatementHelp(std::string_view topic) {
  const std::string wanted = UpperAscii(topic);
  std::string overview;
  for (const Topic& known : kTopics) {
    // "MODEL" and "ALTER" are enough.
    if (known.name == wanted || (!wanted.empty() && (known.name.starts_with(wanted + " ") ||
                                                     wanted.starts_with(known.name)))) {
      return std::string(known.syntax);
    }
    overview += fmt::format("  {}\n", known.example);
  }
  if (wanted.empty()) {
    return overview +
           "\\h TRAIN shows a statement's syntax, \\h DNNClassifier the attributes of a model "
           "type.\n"
           "Everything else goes to the database as it is.\n";
  }
  const auto nearest = NearestName(wanted, StatementHelpTopics());
  return NotFound(fmt::format("no help on {}", topic))
      .Hint(nearest ? fmt::format("did you mean {}?", *nearest)
                    : "the database's own documentation knows its statements");
}

}  // namespace sluice::server
