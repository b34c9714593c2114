#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "base/letter_case.h"
#include "models/registry/registry.h"
#include "parser/quoting.h"
#include "planner/column_function.h"
#include "server/shell/completion_internal.h"
#include "server/statements/settings.h"

namespace sluice::server {
namespace {

constexpr std::string_view kStarts[] = {"SELECT",
                                        "SHOW",
                                        "DESCRIBE MODEL",
                                        "EXPLAIN",
                                        "CREATE",
                                        "CREATE MODEL",
                                        "ALTER MODEL",
                                        "ALTER",
                                        "DROP",
                                        "DROP MODEL",
                                        "INSERT",
                                        "UPDATE",
                                        "DELETE FROM",
                                        "WITH",
                                        "SET",
                                        "BEGIN",
                                        "COMMIT",
                                        "ROLLBACK",
                                        "CANCEL JOB",
                                        "WAIT JOB",
                                        "DROP JOB",
                                        "VALUES",
                                        "GRANT",
                                        "REVOKE",
                                        "EXPORT MODEL",
                                        "IMPORT MODEL FROM"};
constexpr std::string_view kClauses[] = {
    "FROM",   "WHERE",     "GROUP BY", "ORDER BY", "HAVING",      "LIMIT",       "OFFSET",
    "JOIN",   "LEFT JOIN", "ON",       "AS",       "AND",         "OR",          "NOT",
    "IN",     "LIKE",      "BETWEEN",  "IS NULL",  "IS NOT NULL", "UNION ALL",   "DISTINCT",
    "COUNT(", "CASE",      "WHEN",     "THEN",     "ELSE",        "END",         "DESC",
    "INTO",   "VALUES",    "SET",      "TO TRAIN", "TO PREDICT",  "TO EVALUATE", "TO EXPLAIN",
    "WITH",   "COLUMN",    "LABEL",    "USING"};

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':' ||
         c == '$' || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

// Words and symbols of the statement before the word at the cursor; without strings and comments,
// and with the quotes of names removed.
std::vector<std::string> Tokens(std::string_view text, bool* in_string) {
  std::vector<std::string> tokens;
  *in_string = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\'' || c == '"' || c == '`') {
      const size_t end = text.find(c, at + 1);
      if (end == std::string_view::npos) {
        *in_string = c == '\'';
        return tokens;
      }
      tokens.emplace_back(text.substr(at + 1, end - at - 1));
      at = end + 1;
    } else if (text.substr(at, 2) == "--") {
      at = std::min(text.find('\n', at), text.size());
    } else if (IsWordCharacter(c)) {
      size_t end = at;
      while (end < text.size() && IsWordCharacter(text[end])) {
        ++end;
      }
      tokens.emplace_back(text.substr(at, end - at));
      at = end;
    } else {
      if (c == ';') {
        tokens.clear();
      } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
        tokens.emplace_back(1, c);
      }
      ++at;
    }
  }
  return tokens;
}

// Where a quoted name begins that the text does not end, or npos.
size_t OpenName(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (text.substr(at, 2) == "--") {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '\'' || c == '"') {
      const size_t end = text.find(c, at + 1);
      if (end == std::string_view::npos) {
        return c == '"' ? at : end;
      }
      at = end;
    }
  }
  return std::string_view::npos;
}

class Completer {
 public:
  Completer(std::string_view text, const std::function<const CompletionNames&()>& names)
      : names_(names) {
    size_t begin = text.size();
    while (begin > 0 && IsWordCharacter(text[begin - 1])) {
      --begin;
    }
    const size_t name = OpenName(text);
    quoted_ = name != std::string_view::npos;
    begin = quoted_ ? name : begin;  // a name may have blanks
    while (quoted_ && begin > 0 && IsWordCharacter(text[begin - 1])) {
      --begin;  // lab."My model
    }
    word_ = text.substr(begin);
    typed_ = word_;
    typed_.erase(std::remove(typed_.begin(), typed_.end(), '"'), typed_.end());
    completion_.replaced = word_.size();
    for (std::string& token : Tokens(text.substr(0, begin), &in_string_)) {
      upper_.push_back(UpperAscii(token));
      tokens_.push_back(std::move(token));
    }
  }

  Completion Run() {
    if (!in_string_) {
      AddByContext();
    }
    std::sort(completion_.candidates.begin(), completion_.candidates.end());
    completion_.candidates.erase(
        std::unique(completion_.candidates.begin(), completion_.candidates.end()),
        completion_.candidates.end());
    return std::move(completion_);
  }

 private:
  std::string_view Before(size_t steps = 0) const {
    return steps < upper_.size() ? std::string_view(upper_[upper_.size() - 1 - steps]) : "";
  }
  bool Has(std::string_view word) const {
    return std::find(upper_.begin(), upper_.end(), word) != upper_.end();
  }
  // The last clause of ours that has begun.
  std::string_view Clause() const {
    constexpr std::array<std::string_view, 10> kOurs = {"WITH", "OPTIONS", "COLUMN", "LABEL",
                                                        "INTO", "USING",   "TRAIN",  "PREDICT",
                                                        "FROM", "SELECT"};
    for (auto token = upper_.rbegin(); token != upper_.rend(); ++token) {
      if (std::find(kOurs.begin(), kOurs.end(), *token) != kOurs.end()) {
        return *token;
      }
    }
    return "";
  }

  void AddByContext() {
    const std::string_view last = Before();
    const bool ours = Has("TO") || Has("LABEL") || Has("TRAIN");
    const bool explained = !upper_.empty() && upper_.front() == "EXPLAIN";
    const bool explains = Has("EXPLAIN") && !explained;
    if (upper_.empty() || (explained && (upper_.size() == 1 || last == "ANALYZE"))) {
      Keywords(kStarts);
      if (last == "EXPLAIN") {
        Keywords(std::array<std::string_view, 1>{"ANALYZE"});
      }
    } else if (last == "FROM" || last == "JOIN" || last == "UPDATE" || last == "TABLE" ||
               last == "PREDICT") {
      Tables();
    } else if (last == "TRAIN" && Before(1) == "SHOW") {
      Models();
    } else if (last == "TRAIN" || (last == "TYPE" && Before(1) == "MODEL") ||
               (last == "=" && Before(1) == "MODEL_TYPE")) {
      ModelTypes();
    } else if (last == "MODEL") {
      Models();
      if (Before(1) == "SHOW" || Before(1) == "DESCRIBE") {
        Keywords(std::array<std::string_view, 2>{"TYPE", "TYPES"});
      }
    } else if (last == "INTO") {
      ours && !Has("EVALUATE") && !explains ? Models() : Tables();
    } else if ((last == "EVALUATE" || last == "EXPLAIN") && Before(1) == "TO") {
      Models();
    } else if (last == "USING" && ours) {
      explains ? Words(std::array<std::string_view, 1>{"XGBoostExplainer"}) : Models();
    } else if (last == "TO" && upper_.front() != "ALTER" && upper_.front() != "GRANT") {
      Keywords(std::array<std::string_view, 4>{"TRAIN", "PREDICT", "EVALUATE", "EXPLAIN"});
    } else if (last == "SHOW") {
      Keywords(std::array<std::string_view, 6>{"MODELS", "MODEL", "MODEL TYPES", "JOBS", "JOB",
                                               "CLUSTER"});
    } else if (last == "DESCRIBE") {
      Keywords(std::array<std::string_view, 2>{"MODEL", "MODEL TYPE"});
    } else if (last == "DROP" || last == "ALTER" || last == "CREATE") {
      Keywords(std::array<std::string_view, 4>{"MODEL", "TABLE", "VIEW", "INDEX"});
    } else if (upper_.front() == "ALTER" && Before(1) == "MODEL") {
      Keywords(std::array<std::string_view, 3>{"PROMOTE", "ROLLBACK", "RENAME TO"});
    } else if (last == "SET" && upper_.size() == 1) {
      for (const SettingSpec& setting : Settings()) {
        Add(setting.name);
      }
    } else if (last == "LABEL") {
      Columns();
    } else if ((Clause() == "WITH" && ours) || Clause() == "OPTIONS") {
      last == "=" ? AttributeValues(Before(1)) : Attributes();
    } else if (Clause() == "COLUMN") {
      for (const planner::ColumnFunction& function : planner::ColumnFunctions()) {
        Add(std::string(function.name) + "(");
      }
      completion_.suffix = "";
      Columns();
    } else {
      Columns();
      if (!typed_.empty()) {
        Keywords(kClauses);
      }
    }
  }

  void Add(const std::string& candidate) {
    if (!quoted_ && StartsInAnyCase(candidate, typed_)) {
      completion_.candidates.push_back(candidate);
    }
  }

  template <typename List>
  void Words(const List& words) {
    for (const std::string_view word : words) {
      Add(std::string(word));
    }
  }

  // Candidates in the letter case that is being typed.
  template <typename List>
  void Keywords(const List& words) {
    const bool lower = std::any_of(typed_.begin(), typed_.end(),
                                   [](unsigned char c) { return std::islower(c) != 0; });
    for (const std::string_view word : words) {
      Add(lower ? LowerAscii(word) : std::string(word));
    }
  }

  // Adds a name as it must be written in a statement.
  void AddName(const std::string& name) {
    // One with a line end would run the line.
    const bool control =
        std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c) != 0; });
    if (!control && StartsInAnyCase(name, typed_)) {
      completion_.candidates.push_back(Written(name, quoted_));
    }
  }

  std::string Written(const std::string& name, bool quoted) const {
    const bool plain = !name.empty() &&
                       (std::isdigit(static_cast<unsigned char>(name.front())) == 0) &&
                       std::all_of(name.begin(), name.end(), [this](unsigned char c) {
                         return c == '_' || std::isdigit(c) != 0 || std::islower(c) != 0 ||
                                (!names_().folds && std::isupper(c) != 0);
                       });
    return plain && !quoted ? name : parser::QuoteName(name);
  }

  void Tables() {
    for (const std::string& table : names_().tables) {
      AddName(table);
    }
  }
  void Models() {
    for (const std::string& model : names_().models) {
      const size_t dot = model.find('.');  // behind the schema
      if (dot == std::string::npos) {
        AddName(model);
      } else if (StartsInAnyCase(model, typed_)) {
        completion_.candidates.push_back(Written(model.substr(0, dot), false) + '.' +
                                         Written(model.substr(dot + 1), false));
      }
    }
  }
  void ModelTypes() {
    for (const models::ModelType& type : models::ModelTypes()) {
      Add(type.name);
    }
  }

  // Adds the columns of the tables that the statement names, or of all tables while it names none.
  void Columns() {
    const CompletionNames& names = names_();
    const size_t dot = typed_.rfind('.');
    std::set<std::string> named;
    for (const std::string& table : names.tables) {
      if (Has(UpperAscii(table))) {
        named.insert(table);
      }
    }
    for (const auto& [table, column] : names.columns) {
      if (dot != std::string_view::npos) {
        if (UpperAscii(typed_.substr(0, dot)) == UpperAscii(table)) {
          Add(fmt::format("{}.{}", table, column));
        }
      } else if (named.empty() ? !typed_.empty() : named.count(table) > 0) {
        AddName(column);
      }
    }
  }

  // The attributes that may follow WITH in this statement.
  std::vector<const models::AttributeSpec*> KnownAttributes() const {
    std::vector<const models::AttributeSpec*> known;
    const auto add = [&known](const std::vector<models::AttributeSpec>& attributes) {
      for (const models::AttributeSpec& attribute : attributes) {
        if (!attribute.without_effect) {
          known.push_back(&attribute);
        }
      }
    };
    for (const char* kind : {"predict", "evaluate", "explain"}) {
      if (Has(UpperAscii(kind))) {
        add(models::StatementAttributes(kind));
        return known;
      }
    }
    for (size_t i = 0; i + 1 < upper_.size(); ++i) {
      const size_t name = upper_[i] == "TRAIN"        ? i + 1
                          : upper_[i] == "MODEL_TYPE" ? i + 2
                                                      : upper_.size();
      const models::ModelType* type =
          name < tokens_.size() ? models::FindModelType(tokens_[name]) : nullptr;
      if (type != nullptr) {
        add(type->attributes);
        return known;
      }
    }
    for (const models::ModelType& type : models::ModelTypes()) {  // one that training will choose
      add(type.attributes);
    }
    return known;
  }

  void Attributes() {
    for (const models::AttributeSpec* attribute : KnownAttributes()) {
      Add(attribute->name);
    }
    completion_.suffix = "=";
  }

  void AttributeValues(std::string_view name) {
    for (const models::AttributeSpec* attribute : KnownAttributes()) {
      if (UpperAscii(attribute->name) != name) {
        continue;
      }
      Words(attribute->allowed);
      if (attribute->type == models::AttributeType::kFlag) {
        Words(std::array<std::string_view, 2>{"true", "false"});
      }
    }
  }

  const std::function<const CompletionNames&()>& names_;
  Completion completion_;
  std::string word_;
  std::string typed_;  // without quotes
  bool quoted_ = false;
  bool in_string_ = false;
  std::vector<std::string> tokens_;
  std::vector<std::string> upper_;
};

}  // namespace

bool StartsInAnyCase(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && SameIgnoringCase(text.substr(0, start.size()), start);
}

Completion CompleteStatement(std::string_view text,
                             const std::function<const CompletionNames&()>& names) {
  return Completer(text, names).Run();
}

}  // namespace sluice::server
