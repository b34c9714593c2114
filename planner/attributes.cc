#include "planner/attributes.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/letter_case.h"
#include "base/value.h"
#include "parser/printer.h"
#include "planner/error_list.h"

namespace sluice::planner {
namespace {

using models::AttributeSpec;
using models::AttributeType;
using parser::AttributeValue;

bool IsNothing(const AttributeValue& value) {
  return std::holds_alternative<std::monostate>(value.value);
}

// Whether the value is null, or None as in Python, and not one of the choices (split.kind = none).
bool MeansNothing(const AttributeValue& value, const AttributeSpec& spec) {
  const auto* word = std::get_if<AttributeValue::Word>(&value.value);
  if (word == nullptr || LowerAscii(word->text) != "none") {
    return IsNothing(value);
  }
  return spec.allowed.empty() || !models::CanonicalChoice(spec, word->text);
}

std::optional<std::string> TextOf(const AttributeValue& value) {
  if (const auto* word = std::get_if<AttributeValue::Word>(&value.value)) {
    return word->text;
  }
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    return *text;
  }
  return std::nullopt;
}

std::optional<double> AttributeNumber(const AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* number = std::get_if<double>(&value.value)) {
    return std::isfinite(*number) ? std::optional<double>(*number) : std::nullopt;
  }
  return std::nullopt;
}

// 1e4 is an integer too.
std::optional<int64_t> AttributeInteger(const AttributeValue& value) {
  constexpr double kExactlyRepresented = 9007199254740992.0;  // 2^53
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    return *integer;
  }
  const std::optional<double> number = AttributeNumber(value);
  if (number && *number == std::floor(*number) && std::abs(*number) < kExactlyRepresented) {
    return static_cast<int64_t>(*number);
  }
  return std::nullopt;
}

// "text 'a'", "the number 0.5", "a list".
std::string Describe(const AttributeValue& value) {
  if (const auto text = TextOf(value)) {
    return fmt::format("text '{}'", *text);
  }
  if (std::holds_alternative<bool>(value.value)) {
    return std::get<bool>(value.value) ? "true" : "false";
  }
  if (std::holds_alternative<AttributeValue::List>(value.value)) {
    return "the list " + parser::Print(value);
  }
  if (std::holds_alternative<AttributeValue::Map>(value.value)) {
    return "the map " + parser::Print(value);
  }
  if (IsNothing(value)) {
    return "null";
  }
  return "the number " + parser::Print(value);
}

std::string WithArticle(AttributeType type) {
  const std::string_view name = models::AttributeTypeName(type);
  if (type == AttributeType::kText || type == AttributeType::kFlag) {
    return std::string(name);
  }
  return fmt::format("{} {}", name.starts_with("i") ? "an" : "a", name);
}

Status WrongType(const AttributeSpec& spec, const AttributeValue& value) {
  Status status = InvalidArgument(fmt::format("attribute {} must be {}, not {}", spec.name,
                                              WithArticle(spec.type), Describe(value)))
                      .At(value.span);
  const bool is_list = spec.type == AttributeType::kIntegerList ||
                       spec.type == AttributeType::kNumberList ||
                       spec.type == AttributeType::kTextList;
  if (is_list && !std::holds_alternative<AttributeValue::List>(value.value)) {
    return std::move(status).Hint(
        fmt::format("write a list: {} = {}", spec.name,
                    spec.type == AttributeType::kTextList ? "['a', 'b']" : "[64, 32]"));
  }
  return spec.doc.empty() ? status
                          : std::move(status).Hint(fmt::format("{}: {}", spec.name, spec.doc));
}

std::string FormatLimit(double limit) {
  return FormatDouble(limit);
}

Status CheckRange(const AttributeSpec& spec, double number, Span span) {
  const bool too_small = spec.min && number < *spec.min;
  const bool too_large = spec.max && number > *spec.max;
  if (!too_small && !too_large) {
    return OkStatus();
  }
  const std::string range =
      spec.min && spec.max
          ? fmt::format("from {} to {}", FormatLimit(*spec.min), FormatLimit(*spec.max))
      : spec.min ? fmt::format("at least {}", FormatLimit(*spec.min))
                 : fmt::format("at most {}", FormatLimit(*spec.max));
  return InvalidArgument(
             fmt::format("attribute {} must be {}, not {}", spec.name, range, FormatLimit(number)))
      .At(span);
}

// Words of a closed set match in any case; the result has the declared spelling.
Result<std::string> CheckAllowed(const AttributeSpec& spec, const std::string& text, Span span) {
  if (std::optional<std::string> choice = models::CanonicalChoice(spec, text)) {
    return std::move(*choice);
  }
  Status status = InvalidArgument(fmt::format("attribute {} must be one of {}; not '{}'", spec.name,
                                              fmt::join(spec.allowed, ", "), text))
                      .At(span);
  const std::optional<std::string> nearest = NearestName(text, spec.allowed);
  return nearest ? std::move(status).Hint(fmt::format("did you mean '{}'?", *nearest)) : status;
}

Result<TypedValue> ReadNumbers(const AttributeSpec& spec, const AttributeValue& value,
                               const AttributeValue::List& list) {
  std::vector<double> numbers;
  for (const AttributeValue& element : list) {
    const std::optional<double> number = AttributeNumber(element);
    const bool integral = AttributeInteger(element).has_value();
    if (!number || (spec.type == AttributeType::kIntegerList && !integral)) {
      return InvalidArgument(
                 fmt::format("attribute {} must be {}: {} is not {}", spec.name,
                             WithArticle(spec.type), parser::Print(element),
                             spec.type == AttributeType::kIntegerList ? "an integer" : "a number"))
          .At(element.span.valid() ? element.span : value.span);
    }
    RETURN_IF_ERROR(CheckRange(spec, *number, element.span.valid() ? element.span : value.span));
    numbers.push_back(*number);
  }
  return TypedValue(std::move(numbers));
}

Result<TypedValue> ReadTexts(const AttributeSpec& spec, const AttributeValue& value,
                             const AttributeValue::List& list) {
  std::vector<std::string> texts;
  for (const AttributeValue& element : list) {
    std::optional<std::string> text = TextOf(element);
    if (!text && AttributeNumber(element)) {
      text = parser::Print(element);  // label_vocabulary = [0, 1, 2]
    }
    if (!text) {
      return WrongType(spec, value);
    }
    ASSIGN_OR_RETURN(std::string checked, CheckAllowed(spec, *text, value.span));
    texts.push_back(std::move(checked));
  }
  return TypedValue(std::move(texts));
}

Result<TypedValue> ReadNamedNumbers(const AttributeSpec& spec, const AttributeValue::Map& map) {
  std::vector<NamedNumber> named;
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const AttributeValue& key = map.keys[i];
    const AttributeValue& value = map.values[i];
    const std::optional<std::string> text = TextOf(key);
    if (!text && !AttributeNumber(key) && !std::holds_alternative<bool>(key.value)) {
      return InvalidArgument(fmt::format("attribute {}: {} is no name", spec.name, Describe(key)))
          .At(key.span);
    }
    const std::optional<double> number = AttributeNumber(value);
    if (!number) {
      return InvalidArgument(fmt::format("attribute {}: '{}' needs a number, not {}", spec.name,
                                         text ? *text : parser::Print(key), Describe(value)))
          .At(value.span);
    }
    named.push_back({text ? *text : parser::Print(key), *number, key.span, value.span});
  }
  return TypedValue(std::move(named));
}

Result<TypedValue> ReadValue(const AttributeSpec& spec, const AttributeValue& value) {
  switch (spec.type) {
    case AttributeType::kFlag:
      if (const auto* flag = std::get_if<bool>(&value.value)) {
        return TypedValue(*flag);
      }
      break;
    case AttributeType::kInteger:
      if (const std::optional<int64_t> integer = AttributeInteger(value)) {
        RETURN_IF_ERROR(CheckRange(spec, static_cast<double>(*integer), value.span));
        return TypedValue(*integer);
      }
      break;
    case AttributeType::kNumber:
      if (const std::optional<double> number = AttributeNumber(value)) {
        RETURN_IF_ERROR(CheckRange(spec, *number, value.span));
        return TypedValue(*number);
      }
      break;
    case AttributeType::kText:
      if (const std::optional<std::string> text = TextOf(value)) {
        ASSIGN_OR_RETURN(std::string checked, CheckAllowed(spec, *text, value.span));
        return TypedValue(std::move(checked));
      }
      if (spec.or_number && AttributeNumber(value)) {
        return TypedValue(parser::Print(value));
      }
      if (const auto* map = std::get_if<AttributeValue::Map>(&value.value);
          map != nullptr && spec.or_map) {
        return ReadNamedNumbers(spec, *map);
      }
      break;
    case AttributeType::kIntegerList:
    case AttributeType::kNumberList:
      if (const auto* list = std::get_if<AttributeValue::List>(&value.value)) {
        return ReadNumbers(spec, value, *list);
      }
      if (spec.or_number && AttributeNumber(value)) {
        return ReadNumbers(spec, value, AttributeValue::List{value});
      }
      break;
    case AttributeType::kTextList:
      if (const auto* list = std::get_if<AttributeValue::List>(&value.value)) {
        return ReadTexts(spec, value, *list);
      }
      break;
  }
  return WrongType(spec, value);
}

std::optional<TypedValue> DefaultOf(const AttributeSpec& spec) {
  return std::visit(
      [](const auto& value) -> std::optional<TypedValue> {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return std::nullopt;
        } else {
          return TypedValue(value);
        }
      },
      spec.default_value);
}

std::string NearestHint(const std::vector<AttributeSpec>& specs, std::string_view name) {
  std::vector<std::string> names;
  for (const AttributeSpec& spec : specs) {
    names.push_back(spec.name);
    names.insert(names.end(), spec.aliases.begin(), spec.aliases.end());
  }
  const std::optional<std::string> nearest = NearestName(name, names);
  return nearest ? fmt::format("did you mean '{}'?", *nearest) : "";
}

}  // namespace

Status AttributeSet::Bind(const models::ModelType& type, Span place,
                          const std::vector<parser::Attribute>& attributes, bool continues,
                          AttributeSet* set) {
  Status status = set->BindAll(type.attributes, attributes, [&type](std::string_view name) {
    const std::string hint = models::UnknownAttributeHint(type, name);
    return hint.empty() ? fmt::format("DESCRIBE MODEL TYPE {} lists what there is", type.name)
                        : hint;
  });
  if (!continues) {
    status.Add(set->CheckRequired(type.name, place));
  }
  return status;
}

Status AttributeSet::Bind(const std::vector<AttributeSpec>& specs, std::string_view statement,
                          Span place, const std::vector<parser::Attribute>& attributes,
                          AttributeSet* set) {
  Status status = set->BindAll(
      specs, attributes, [&specs](std::string_view name) { return NearestHint(specs, name); });
  status.Add(set->CheckRequired(statement, place));
  return status;
}

Status AttributeSet::BindAll(const std::vector<AttributeSpec>& specs,
                             const std::vector<parser::Attribute>& attributes,
                             const std::function<std::string(std::string_view)>& hint) {
  std::unordered_map<std::string, const AttributeSpec*> by_name;
  for (const AttributeSpec& spec : specs) {
    by_name.emplace(LowerAscii(spec.name), &spec);
    Entry entry;
    entry.spec = &spec;
    entry.value = DefaultOf(spec);
    entries_.emplace(spec.name, std::move(entry));
  }
  for (const AttributeSpec& spec : specs) {  // a name wins over another's alias
    for (const std::string& alias : spec.aliases) {
      by_name.emplace(LowerAscii(alias), &spec);
    }
  }
  ErrorList errors;
  for (const parser::Attribute& attribute : attributes) {
    const auto found = by_name.find(LowerAscii(attribute.name.text));
    if (found != by_name.end()) {
      errors.Add(BindOne(attribute, *found->second));
      continue;
    }
    errors.Add(InvalidArgument(fmt::format("unsupported attribute {}", attribute.name.text))
                   .At(attribute.name.span)
                   .Hint(hint(attribute.name.text)));
    if (errors.full()) {
      break;
    }
  }
  return errors.Take();
}

Status AttributeSet::CheckRequired(std::string_view owner, Span place) const {
  Status errors;
  for (const auto& [name, entry] : entries_) {
    if (entry.spec->required && !entry.written) {
      const bool is_list = entry.spec->type == AttributeType::kIntegerList;
      errors.Add(InvalidArgument(fmt::format("{} needs the attribute {}", owner, name))
                     .At(place)
                     .Hint(fmt::format("WITH {}={}: {}", name, is_list ? "[64, 32]" : "...",
                                       entry.spec->doc)));
    }
  }
  return errors;
}

Status AttributeSet::BindOne(const parser::Attribute& attribute, const AttributeSpec& spec) {
  Entry& entry = entries_.find(spec.name)->second;
  if (entry.written) {
    return InvalidArgument(fmt::format("attribute {} is given twice", spec.name))
        .At(attribute.name.span);
  }
  entry.written = true;
  if (MeansNothing(attribute.value, spec) && !spec.required) {
    return OkStatus();  // null: as if it were absent
  }
  entry.given = true;
  entry.value_span = attribute.value.span;
  ASSIGN_OR_RETURN(entry.value, ReadValue(spec, attribute.value));
  return OkStatus();
}

std::vector<std::string> AttributeSet::WithoutEffect() const {
  std::vector<std::string> told;
  for (const auto& [name, entry] : entries_) {
    if (entry.given && entry.spec->without_effect) {
      told.push_back(fmt::format("{}: {}", name, entry.spec->doc));
    }
  }
  return told;
}

const TypedValue* AttributeSet::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() || !found->second.value ? nullptr : &*found->second.value;
}

bool AttributeSet::Given(std::string_view name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.given;
}

Span AttributeSet::SpanOf(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? Span() : found->second.value_span;
}

std::optional<bool> AttributeSet::Flag(std::string_view name) const {
  const TypedValue* value = Find(name);
  const bool* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  return flag == nullptr ? std::nullopt : std::optional<bool>(*flag);
}

std::optional<int64_t> AttributeSet::Integer(std::string_view name) const {
  const TypedValue* value = Find(name);
  const int64_t* integer = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  return integer == nullptr ? std::nullopt : std::optional<int64_t>(*integer);
}

std::optional<double> AttributeSet::Number(std::string_view name) const {
  const TypedValue* value = Find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return static_cast<double>(*integer);
  }
  const double* number = std::get_if<double>(value);
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

std::optional<std::string> AttributeSet::Text(std::string_view name) const {
  const TypedValue* value = Find(name);
  const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr || text->empty() ? std::nullopt : std::optional<std::string>(*text);
}

std::optional<std::vector<double>> AttributeSet::Numbers(std::string_view name) const {
  const TypedValue* value = Find(name);
  const auto* numbers = value == nullptr ? nullptr : std::get_if<std::vector<double>>(value);
  return numbers == nullptr ? std::nullopt : std::optional<std::vector<double>>(*numbers);
}

std::optional<std::vector<std::string>> AttributeSet::Texts(std::string_view name) const {
  const TypedValue* value = Find(name);
  const auto* texts = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  return texts == nullptr ? std::nullopt : std::optional<std::vector<std::string>>(*texts);
}

std::optional<std::vector<NamedNumber>> AttributeSet::NamedNumbers(std::string_view name) const {
  const TypedValue* value = Find(name);
  const auto* named = value == nullptr ? nullptr : std::get_if<std::vector<NamedNumber>>(value);
  return named == nullptr ? std::nullopt : std::optional<std::vector<NamedNumber>>(*named);
}

}  // namespace sluice::planner
