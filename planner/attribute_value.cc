#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/letter_case.h"
#include "base/value.h"
#include "parser/printer.h"
#include "planner/attribute_value_internal.h"
#include "planner/rounded_number.h"

namespace sluice::planner {

using models::AttributeSpec;
using models::AttributeType;
using parser::AttributeValue;

namespace {

bool IsNothing(const AttributeValue& value) {
  return std::holds_alternative<std::monostate>(value.value);
}

}  // namespace

bool MeansNothing(const AttributeValue& value, const AttributeSpec& spec) {
  const auto* word = std::get_if<AttributeValue::Word>(&value.value);
  if (word == nullptr || LowerAscii(word->text) != "none") {
    return IsNothing(value);
  }
  return spec.allowed.empty() || !models::CanonicalChoice(spec, word->text);
}

namespace {

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
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    return *integer;
  }
  const std::optional<double> number = AttributeNumber(value);
  if (number && *number == std::floor(*number) && std::abs(*number) < kExactIntegers) {
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

}  // namespace

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

}  // namespace sluice::planner
