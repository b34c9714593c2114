#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "catalog/sqlite/sqlite_functions_internal.h"

// PostgreSQL's array functions, over arrays that are text.
namespace sluice::catalog {
namespace {

// The elements of an array's text ("{a,b}") or of a vector's ("1 2").
std::vector<std::string> ElementsOf(std::string_view text) {
  const bool braces = text.starts_with('{') && text.ends_with('}');
  if (braces) {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::string> elements;
  std::string element;
  bool quoted = false;
  bool any = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    any = true;
    if (c == '"' && braces) {
      quoted = !quoted;
    } else if (c == '\\' && quoted && i + 1 < text.size()) {
      element += text[++i];
    } else if (!quoted && c == (braces ? ',' : ' ')) {
      elements.push_back(std::exchange(element, {}));
    } else {
      element += c;
    }
  }
  if (any) {
    elements.push_back(element);
  }
  return elements;
}

std::string ArrayElement(sqlite3_value* value) {
  return IsNullValue(value) ? "NULL" : QuotedArrayElement(TextOf(value));
}

void MakeArray(sqlite3_context* context, int count, sqlite3_value** arguments) {
  std::string array = "{";
  for (int i = 0; i < count; ++i) {
    array += (i == 0 ? "" : ",") + ArrayElement(arguments[i]);
  }
  Answer(context, array + "}");
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
  const std::vector<std::string> elements = ElementsOf(TextOf(arguments[1]));
  sqlite3_result_int(context, std::count(elements.begin(), elements.end(), sought) > 0 ? 1 : 0);
}

void ArrayGet(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  const std::vector<std::string> elements = ElementsOf(TextOf(arguments[0]));
  const int64_t first = TextOf(arguments[0]).starts_with('{') ? 1 : 0;  // vectors begin at 0
  const int64_t at = sqlite3_value_int64(arguments[1]) - first;
  if (IsNullValue(arguments[0]) || at < 0 || std::cmp_greater_equal(at, elements.size())) {
    sqlite3_result_null(context);
    return;
  }
  Answer(context, elements[static_cast<size_t>(at)]);
}

void ArrayToString(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0])) {
    sqlite3_result_null(context);
    return;
  }
  std::string joined;
  bool first = true;
  for (const std::string& element : ElementsOf(TextOf(arguments[0]))) {
    joined += first ? "" : TextOf(arguments[1]);
    joined += element;
    first = false;
  }
  Answer(context, joined);
}

void ArrayJson(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  std::string json = "[";
  for (const std::string& element : ElementsOf(TextOf(arguments[0]))) {
    json += json.size() > 1 ? ",\"" : "\"";
    for (const char c : element) {
      json += c == '"' || c == '\\' ? "\\" : "";
      json += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    json += '"';
  }
  Answer(context, json + "]");
}

// string_to_array(text, separator)
void StringToArray(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0])) {
    sqlite3_result_null(context);
    return;
  }
  const std::string_view separator = TextOf(arguments[1]);
  std::string_view rest = TextOf(arguments[0]);
  std::string array = "{";
  while (!rest.empty()) {
    const size_t end =
        separator.empty() ? rest.size() : std::min(rest.find(separator), rest.size());
    array += (array.size() > 1 ? "," : "") + QuotedArrayElement(rest.substr(0, end));
    if (end == rest.size()) {
      break;
    }
    rest.remove_prefix(end + separator.size());
    if (rest.empty()) {
      array += ",\"\"";
    }
  }
  Answer(context, array + "}");
}

void ArrayLower(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  ElementsOf(TextOf(arguments[0])).empty() ? sqlite3_result_null(context)
                                           : sqlite3_result_int(context, 1);
}

void ArrayLength(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  const size_t size = ElementsOf(TextOf(arguments[0])).size();
  size == 0 ? sqlite3_result_null(context)
            : sqlite3_result_int64(context, static_cast<int64_t>(size));
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
