#include <algorithm>
#include <memory>
#include <utility>

#include "catalog/sqlite/sqlite_functions_internal.h"

// PostgreSQL's array functions, over arrays that are text.
namespace sluice::catalog {
namespace {

// Calls `see` with the elements of an array's text ("{a,b}") or of a vector's ("1 2"), one after
// another, until it returns false. They are not kept: an element of two bytes would take forty.
template <typename See>
void SeeElements(std::string_view text, See see) {
  const bool braces = text.starts_with('{') && text.ends_with('}');
  if (braces) {
    text = text.substr(1, text.size() - 2);
  }
  std::string element;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && braces) {
      quoted = !quoted;
    } else if (c == '\\' && quoted && i + 1 < text.size()) {
      element += text[++i];
    } else if (!quoted && c == (braces ? ',' : ' ')) {
      if (!see(std::string_view(element))) {
        return;
      }
      element.clear();
    } else {
      element += c;
    }
  }
  if (!text.empty()) {
    see(std::string_view(element));
  }
}

// Builds a function's text, which is outside of SQLite's memory, and no longer than a value may be.
class AnswerText {
 public:
  explicit AnswerText(sqlite3_context* context)
      : context_(context),
        most_(static_cast<size_t>(
            sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1))) {}

  // False: it would be too long, and the function is to end.
  bool Add(std::string_view more) {
    if (more.size() > most_ - text_.size()) {
      too_long_ = true;
      return false;
    }
    text_ += more;
    return true;
  }
  void End() { too_long_ ? sqlite3_result_error_toobig(context_) : Answer(context_, text_); }

 private:
  sqlite3_context* const context_;
  const size_t most_;
  std::string text_;
  bool too_long_ = false;
};

std::string ArrayElement(sqlite3_value* value) {
  return IsNullValue(value) ? "NULL" : QuotedArrayElement(TextOf(value));
}

void MakeArray(sqlite3_context* context, int count, sqlite3_value** arguments) {
  AnswerText array(context);
  bool fits = array.Add("{");
  for (int i = 0; fits && i < count; ++i) {
    fits = array.Add(i == 0 ? "" : ",") && array.Add(ArrayElement(arguments[i]));
  }
  fits = fits && array.Add("}");
  array.End();
}

// An aggregate's text so far.
std::string* Collected(sqlite3_context* context, bool make) {
  auto** held = static_cast<std::string**>(
      sqlite3_aggregate_context(context, make ? static_cast<int>(sizeof(std::string*)) : 0));
  if (held == nullptr) {
    return nullptr;
  }
  if (*held == nullptr && make) {
    *held = std::make_unique<std::string>().release();  // freed by the last step
  }
  return *held;
}

// An aggregate's text is outside of SQLite's memory, and no longer than a value may be.
void Collect(sqlite3_context* context, std::string_view separator, std::string_view more) {
  std::string* const text = Collected(context, true);
  if (text == nullptr) {
    return;
  }
  const int most = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
  if (std::cmp_greater(text->size() + separator.size() + more.size(), most)) {
    sqlite3_result_error_toobig(context);
    return;
  }
  *text += text->empty() ? std::string_view() : separator;
  *text += more;
}

void ArrayOfStep(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  Collect(context, ",", ArrayElement(arguments[0]));
}

void ArrayOfEnd(sqlite3_context* context) {
  const std::unique_ptr<std::string> text(Collected(context, false));
  Answer(context, "{" + (text == nullptr ? std::string() : *text) + "}");
}

void StringAggStep(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0])) {
    return;
  }
  Collect(context, TextOf(arguments[1]), TextOf(arguments[0]));
}

void StringAggEnd(sqlite3_context* context) {
  const std::unique_ptr<std::string> text(Collected(context, false));
  text == nullptr ? sqlite3_result_null(context) : Answer(context, *text);
}

void AnyEquals(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0]) || IsNullValue(arguments[1])) {
    sqlite3_result_null(context);
    return;
  }
  const std::string sought(TextOf(arguments[0]));
  bool found = false;
  SeeElements(TextOf(arguments[1]), [&](std::string_view element) {
    found = element == sought;
    return !found;
  });
  sqlite3_result_int(context, found ? 1 : 0);
}

void ArrayGet(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  const int64_t first = TextOf(arguments[0]).starts_with('{') ? 1 : 0;  // vectors begin at 0
  const int64_t number = sqlite3_value_int64(arguments[1]);
  sqlite3_result_null(context);
  if (IsNullValue(arguments[0]) || number < first) {
    return;
  }
  int64_t at = first;
  SeeElements(TextOf(arguments[0]), [&](std::string_view element) {
    if (at++ < number) {
      return true;
    }
    Answer(context, element);
    return false;
  });
}

void ArrayToString(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0])) {
    sqlite3_result_null(context);
    return;
  }
  const std::string separator(TextOf(arguments[1]));
  AnswerText joined(context);
  bool first = true;
  SeeElements(TextOf(arguments[0]), [&](std::string_view element) {
    return (std::exchange(first, false) || joined.Add(separator)) && joined.Add(element);
  });
  joined.End();
}

void ArrayJson(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  AnswerText json(context);
  bool fits = json.Add("[");
  bool first = true;
  SeeElements(TextOf(arguments[0]), [&](std::string_view element) {
    std::string quoted = std::exchange(first, false) ? "\"" : ",\"";
    for (const char c : element) {
      quoted += c == '"' || c == '\\' ? "\\" : "";
      quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    fits = fits && json.Add(quoted) && json.Add("\"");
    return fits;
  });
  fits = fits && json.Add("]");
  json.End();
}

// string_to_array(text, separator)
void StringToArray(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0])) {
    sqlite3_result_null(context);
    return;
  }
  const std::string separator(TextOf(arguments[1]));
  std::string_view rest = TextOf(arguments[0]);
  AnswerText array(context);
  bool fits = array.Add("{");
  bool first = true;
  while (fits && !rest.empty()) {
    const size_t end =
        separator.empty() ? rest.size() : std::min(rest.find(separator), rest.size());
    fits = array.Add(std::exchange(first, false) ? "" : ",") &&
           array.Add(QuotedArrayElement(rest.substr(0, end)));
    if (end == rest.size()) {
      break;
    }
    rest.remove_prefix(end + separator.size());
    if (rest.empty()) {
      fits = fits && array.Add(",\"\"");
    }
  }
  fits = fits && array.Add("}");
  array.End();
}

void ArrayLower(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  sqlite3_result_null(context);
  SeeElements(TextOf(arguments[0]), [&](std::string_view /*element*/) {
    sqlite3_result_int(context, 1);
    return false;
  });
}

void ArrayLength(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  int64_t size = 0;
  SeeElements(TextOf(arguments[0]), [&](std::string_view /*element*/) {
    ++size;
    return true;
  });
  size == 0 ? sqlite3_result_null(context) : sqlite3_result_int64(context, size);
}

}  // namespace

std::string QuotedArrayElement(std::string_view text) {
  if (!text.empty() && text.find_first_of(" ,{}\"\\") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' || c == '\\' ? "\\" : "";
    quoted += c;
  }
  return quoted + "\"";
}

void AddArrayFunctions(FunctionRegistrar& add) {
  add.Add("pg_make_array", -1, MakeArray);
  add.AddAggregate("pg_array_of", 1, ArrayOfStep, ArrayOfEnd);
  add.AddAggregate("array_agg", 1, ArrayOfStep, ArrayOfEnd);
  add.AddAggregate("string_agg", 2, StringAggStep, StringAggEnd);
  add.Add("pg_any_equals", 2, AnyEquals);
  add.Add("pg_array_get", 2, ArrayGet);
  add.Add("array_to_string", -1, ArrayToString);
  add.Add("pg_array_json", 1, ArrayJson);
  add.Add("array_length", 2, ArrayLength);
  add.Add("array_upper", 2, ArrayLength);
  add.Add("array_lower", 2, ArrayLower);
  add.Add("string_to_array", 2, StringToArray);
}

}  // namespace sluice::catalog
