#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

// The content of a script, before anything is known about the database. Every node carries its
// span: byte offsets into the text that was passed to Parse. Plain values, freely copied.
namespace sluice::parser {

// A name as written, without its quotes; dots, slashes and colons stay inside ("iris.train",
// "a/b:v0.2/Model", "reg:squarederror"). `parts` is the text cut at unquoted dots.
struct Name {
  std::string text;
  std::vector<std::string> parts;
  bool quoted = false;  // any part
  Span span;
  std::vector<bool> quoted_parts = {};  // one for each part; empty: `quoted` holds for all

  bool IsQuoted(size_t part) const {
    return part < quoted_parts.size() ? quoted_parts[part] : quoted;
  }
};

// [schema.]name[:version]; SQLFlow's "host:port/name:tag" stays whole in `name`.
struct ModelName {
  std::string schema;  // "" when not given
  std::string name;
  std::optional<int64_t> version;
  Span span;
};

// The database's own SELECT inside an extended statement: text as written, without trailing blanks.
struct Select {
  std::string text;
  Span span;
};

// Expressions of COLUMN clauses, attribute values and optimize clauses.
struct Expression {
  enum class Kind {
    kStar,    // *
    kName,    // text = the name
    kNumber,  // text = as written, without sign
    kString,  // text = unescaped content
    kList,    // [args...]
    kCall,    // text(args...)
    kUnary,   // text = "-" | "+" | "NOT"; one arg
    kBinary,  // text = operator, upper case for AND/OR; two args
    kParen,   // (arg)
  };
  Kind kind = Kind::kName;
  std::string text;
  std::vector<Expression> args;
  Span span;
};

// The value of an attribute, typed as written: null, true/false (any case), integers, other
// numbers, strings and bare words, lists of these, and maps from one to another.
struct AttributeValue {
  struct Word {  // an unquoted identifier: Adam, reg:squarederror
    std::string text;
    bool operator==(const Word&) const = default;
  };
  using List = std::vector<AttributeValue>;
  struct Map {  // {'yes': 5, 'no': 1}: as many values as keys
    List keys, values;
  };
  std::variant<std::monostate, bool, int64_t, double, std::string, Word, List, Map> value;
  Span span;
};

struct Attribute {
  Name name;  // "model.hidden_units"
  AttributeValue value;
  Span span;
};

// COLUMN a, b FOR target; target.text is "" without FOR.
struct ColumnClause {
  std::vector<Expression> columns;
  std::optional<Name> target;
  Span span;
};

// TO TRAIN, the short LABEL form (no model_type), and CREATE MODEL.
struct TrainStatement {
  Select select;
  std::optional<Name> model_type;  // nullopt: the planner chooses
  std::vector<Attribute> attributes;
  std::vector<ColumnClause> columns;
  std::optional<Name> label;
  std::optional<ModelName> base_model;  // USING
  ModelName into;
  // CREATE [OR REPLACE] MODEL. Without OR REPLACE an existing model is an error.
  bool create_form = false;
  bool or_replace = false;
  std::string written;  // the whole statement as the user wrote it
  Span span;
};

struct PredictStatement {
  Select select;
  // "table.column" or "schema.table.column"; a single part names only the column of a streamed
  // result; nullopt streams under the label's own name.
  std::optional<Name> target;
  std::vector<Attribute> attributes;
  ModelName model;
  Span span;
};

struct EvaluateStatement {
  Select select;
  ModelName model;
  std::vector<Attribute> attributes;
  std::optional<Name> label;
  std::optional<Name> into;
  Span span;
};

// TO EXPLAIN model: explains a model's predictions. (EXPLAIN <statement> is ExplainPlanStatement.)
struct ModelReportStatement {
  Select select;
  ModelName model;
  std::vector<Attribute> attributes;
  std::optional<Name> explainer;
  std::optional<Name> into;
  Span span;
};

struct RunStatement {
  Select select;
  Name image;
  std::vector<std::string> command;
  std::vector<Name> into;
  Span verb;  // TO RUN
  Span span;
};

struct OptimizeStatement {
  struct Constraint {
    Expression expression;
    std::optional<Name> group_by;
    Span span;
  };
  Select select;
  bool maximize = false;
  Expression objective;
  std::vector<Constraint> constraints;
  std::vector<Attribute> attributes;
  std::optional<Name> solver;
  Name into;
  Span verb;  // TO MAXIMIZE or TO MINIMIZE
  Span span;
};

// CREATE [OR REPLACE] MODEL TYPE name LANGUAGE language AS $$ ... $$
struct CreateModelTypeStatement {
  ModelName type;
  bool or_replace = false;
  Name language;     // onnx, keras
  std::string body;  // without its quotes
  Span body_span;    // of `body`'s first byte and its last one, where it stands as it is written
  bool verbatim = true;  // the body has no escapes: places in it are places in the script
  Span span;
};

struct ShowStatement {
  enum class What { kModels, kModel, kTrain, kModelTypes, kJobs, kJob, kCluster };
  What what = What::kModels;
  std::optional<ModelName> model;  // kModel, kTrain
  int64_t job = 0;                 // kJob
  // kJobs: this many of the newest, or all of them; nullopt and false: the newest few.
  std::optional<int64_t> limit;
  bool all = false;
  Span span;
};

struct DescribeStatement {
  std::optional<ModelName> model;  // DESCRIBE MODEL m
  std::optional<Name> model_type;  // DESCRIBE MODEL TYPE t
  Span span;
};

struct DropModelStatement {
  bool type = false;  // DROP MODEL TYPE
  ModelName model;
  bool if_exists = false;
  Span span;
};

struct AlterModelStatement {
  ModelName model;
  std::optional<int64_t> promote;
  std::optional<ModelName> rename;  // the new name; neither: ROLLBACK
  Span span;
};

// GRANT USAGE, INSPECT ON MODEL m TO role, ... and REVOKE ... FROM role, ...; ALL is both.
struct ModelGrantStatement {
  bool revoke = false;
  bool usage = false;
  bool inspect = false;
  bool type = false;  // ON MODEL TYPE
  ModelName model;
  std::vector<Name> roles;
  Span span;
};

// EXPORT MODEL m [OVERWRITE] TO 'file'
struct ExportModelStatement {
  ModelName model;
  bool overwrite = false;
  std::string file;
  Span file_span;
  Span span;
};

// IMPORT MODEL FROM 'file' [INTO m]
struct ImportModelStatement {
  std::string file;
  Span file_span;
  std::optional<ModelName> into;  // nullopt: the name that it was exported by
  Span span;
};

struct JobStatement {
  enum class Action { kCancel, kWait, kDrop };
  Action action = Action::kCancel;
  int64_t job = 0;
  bool if_exists = false;  // kDrop
  Span span;
};

// SET sluice.name = value and RESET sluice.name; any other SET belongs to the database.
struct SetStatement {
  Name name;
  AttributeValue value;  // of RESET: the word DEFAULT
  bool reset = false;
  Span span;
};

// A statement that the data source itself understands; passed through untouched.
struct PlainStatement {
  std::string text;  // without the final ';'
  bool returns_rows =
      false;  // starts with SELECT, WITH, VALUES, TABLE, SHOW, EXPLAIN, DESCRIBE, PRAGMA ...
  Span span;
};

using ExtendedStatement =
    std::variant<TrainStatement, PredictStatement, EvaluateStatement, ModelReportStatement,
                 RunStatement, OptimizeStatement, ShowStatement, DescribeStatement,
                 CreateModelTypeStatement, DropModelStatement, AlterModelStatement,
                 ModelGrantStatement, ExportModelStatement, ImportModelStatement, JobStatement,
                 SetStatement>;

// Statements about models and jobs, which read no rows and are answered at once.
template <typename Statement>
inline constexpr bool kAboutCatalog =
    std::is_same_v<Statement, ShowStatement> || std::is_same_v<Statement, DescribeStatement> ||
    std::is_same_v<Statement, CreateModelTypeStatement> ||
    std::is_same_v<Statement, DropModelStatement> ||
    std::is_same_v<Statement, AlterModelStatement> ||
    std::is_same_v<Statement, ModelGrantStatement> ||
    std::is_same_v<Statement, ExportModelStatement> ||
    std::is_same_v<Statement, ImportModelStatement> || std::is_same_v<Statement, JobStatement>;

// EXPLAIN [(FORMAT JSON)] <extended statement>: nothing runs, except with ANALYZE.
struct ExplainPlanStatement {
  ExtendedStatement statement;
  bool json = false;
  bool analyze = false;  // runs the statement, and tells what it spent its time on
  Span span;
};

using Statement =
    std::variant<PlainStatement, TrainStatement, PredictStatement, EvaluateStatement,
                 ModelReportStatement, RunStatement, OptimizeStatement, ShowStatement,
                 DescribeStatement, CreateModelTypeStatement, DropModelStatement,
                 AlterModelStatement, ModelGrantStatement, ExportModelStatement,
                 ImportModelStatement, JobStatement, SetStatement, ExplainPlanStatement>;

}  // namespace sluice::parser
