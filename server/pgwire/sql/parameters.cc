#include "server/pgwire/sql/parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/letter_case.h"
#include "base/utf8.h"
#include "catalog/sql/sql_text.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/column_types.h"
#include "server/pgwire/sql/shown_text_internal.h"

namespace sluice::server::pgwire {
namespace {

bool HasNoType(uint32_t oid) {
  return oid == kUnspecifiedOid || oid == kUnknownOid;
}

// The value of a parameter that is not NULL, as a text that PostgreSQL reads.
Result<std::string> TextOfParameter(const BoundParameter& parameter) {
  std::string text(*parameter.value);
  if (parameter.binary) {
    if (!HasNoType(parameter.type) && !HasBinaryForm(parameter.type)) {
      return Unimplemented(fmt::format("parameters of the type with oid {} cannot be read in "
                                       "binary: that form is not built",
                                       parameter.type))
          .Hint("send the parameter as text");
    }
    ASSIGN_OR_RETURN(text, TextOfBinary(parameter.type, *parameter.value));
  }
  if (text.find('\0') != std::string::npos || !IsUtf8(text)) {
    return InvalidArgument("invalid byte sequence for encoding \"UTF8\" in a parameter")
        .SqlState("22021");
  }
  return text;
}

// "pg_catalog.int4"; "" if the statement determines the type.
Result<std::string> TypeNameOf(uint32_t oid, std::string_view given) {
  if (!given.empty()) {
    return std::string(given);
  }
  if (HasNoType(oid)) {
    return std::string();
  }
  if (const BuiltInType* type = FindBuiltInType(oid)) {
    return fmt::format("pg_catalog.{}", type->quoted);
  }
  if (const BuiltInType* element = FindElementType(oid)) {
    return fmt::format("pg_catalog.{}[]", element->quoted);
  }
  return Unimplemented(fmt::format("a parameter has a type (oid {}) that is not known here", oid))
      .Hint("cast it in the select: $1::text::your_type");
}

std::string_view TrimAscii(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

template <typename Number>
std::optional<Number> ReadWhole(std::string_view text) {
  text = TrimAscii(text);
  text.remove_prefix(text.starts_with('+') && !text.starts_with("+-") ? 1 : 0);
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

// PostgreSQL accepts prefixes of words as booleans.
std::optional<bool> ReadBool(std::string_view text) {
  const std::string word = LowerAscii(TrimAscii(text));
  if (word == "1" || word == "on") {
    return true;
  }
  if (word == "0" || word == "of" || word == "off") {
    return false;
  }
  for (const auto& [whole, value] : {std::pair<std::string_view, bool>{"true", true},
                                     {"yes", true},
                                     {"false", false},
                                     {"no", false}}) {
    if (!word.empty() && whole.starts_with(word)) {
      return value;
    }
  }
  return std::nullopt;
}

Status NoSuchValue(std::string_view type, std::string_view text) {
  return InvalidArgument(fmt::format("invalid input syntax for type {}: \"{:.80}\"", type, text))
      .SqlState("22P02");
}

using AttributeContent = decltype(parser::AttributeValue::value);

// The value of a scalar type.
Result<AttributeContent> ScalarAttribute(uint32_t oid, const std::string& text) {
  switch (oid) {
    case kBoolOid:
      if (const std::optional<bool> flag = ReadBool(text)) {
        return AttributeContent(*flag);
      }
      return NoSuchValue("boolean", text);
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
      if (const auto number = ReadWhole<int64_t>(text)) {
        return AttributeContent(*number);
      }
      return NoSuchValue("bigint", text);
    case kFloat4Oid:
    case kFloat8Oid:
    case kNumericOid:
      if (const auto whole = ReadWhole<int64_t>(text); whole.has_value() && oid == kNumericOid) {
        return AttributeContent(*whole);
      }
      if (const auto number = ReadWhole<double>(text)) {  // also NaN, infinity in any case
        return AttributeContent(*number);
      }
      return NoSuchValue("double precision", text);
    case kUnspecifiedOid:
    case kUnknownOid: {
      const bool number =
          !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string::npos;
      if (const auto whole = ReadWhole<int64_t>(text); number && whole.has_value()) {
        return AttributeContent(*whole);
      }
      if (const auto real = ReadWhole<double>(text); number && real.has_value()) {
        return AttributeContent(*real);
      }
      return AttributeContent(text);
    }
    default:
      return AttributeContent(text);
  }
}

// The value of a parameter that is not NULL.
Result<AttributeContent> ContentOf(const BoundParameter& parameter, Span place) {
  ASSIGN_OR_RETURN(const std::string text, TextOfParameter(parameter));
  const BuiltInType* element = FindElementType(parameter.type);
  if (element == nullptr) {
    return ScalarAttribute(parameter.type, text);
  }
  ASSIGN_OR_RETURN(const ArrayValue array, ParseArrayText(text));
  if (array.dimensions.size() > 1) {
    return Unimplemented("an attribute takes arrays of one dimension");
  }
  parser::AttributeValue::List list;
  for (const std::optional<std::string>& item : array.elements) {
    parser::AttributeValue& each = list.emplace_back();
    each.span = place;
    if (item.has_value()) {
      ASSIGN_OR_RETURN(each.value, ScalarAttribute(element->oid, *item));
    }
  }
  return AttributeContent(std::move(list));
}

}  // namespace

Result<std::string> ParameterLiteral(const BoundParameter& parameter, std::string_view type_name) {
  ASSIGN_OR_RETURN(const std::string type, TypeNameOf(parameter.type, type_name));
  const std::string cast = type.empty() ? "" : "::" + type;
  if (!parameter.value.has_value()) {
    return fmt::format("(NULL{})", cast);
  }
  ASSIGN_OR_RETURN(const std::string text, TextOfParameter(parameter));
  return fmt::format("({}{})", catalog::QuoteText(text, catalog::Dialect::kPostgres), cast);
}

Result<std::string> SqliteLiteral(const BoundParameter& parameter) {
  if (!parameter.value.has_value()) {
    return std::string("NULL");
  }
  if (FindElementType(parameter.type) != nullptr) {
    return Unimplemented("SQLite has no arrays");
  }
  ASSIGN_OR_RETURN(const std::string text, TextOfParameter(parameter));
  switch (parameter.type) {
    case kByteaOid: {
      std::string bytes;
      RETURN_IF_ERROR(AppendBinary(kByteaOid, text, &bytes));
      std::string literal = "X'";
      for (const char byte : bytes) {
        literal += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      }
      return literal + "'";
    }
    case kBoolOid:
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
    case kFloat4Oid:
    case kFloat8Oid:
    case kNumericOid: {
      ASSIGN_OR_RETURN(const AttributeContent content, ScalarAttribute(parameter.type, text));
      if (const auto* flag = std::get_if<bool>(&content)) {
        return std::string(*flag ? "TRUE" : "FALSE");
      }
      if (const auto* number = std::get_if<double>(&content)) {
        if (!std::isfinite(*number)) {
          return std::string(std::isnan(*number) ? "NULL" : *number > 0 ? "9e999" : "(-9e999)");
        }
        const std::string digits = DoubleText(*number);
        return fmt::format("({}{})", digits,
                           digits.find_first_of(".e") == std::string::npos ? ".0" : "");
      }
      return fmt::format("({})", std::get<int64_t>(content));
    }
    default:
      return catalog::QuoteText(text, catalog::Dialect::kSqlite);
  }
}

Result<parser::AttributeValue> ParameterAttribute(const BoundParameter& parameter, Span place) {
  parser::AttributeValue attribute;
  attribute.span = place;
  if (!parameter.value.has_value()) {
    return attribute;
  }
  Result<AttributeContent> content = ContentOf(parameter, place);
  if (!content.ok()) {
    return content.status().MovedTo(place);
  }
  attribute.value = *std::move(content);
  return attribute;
}

}  // namespace sluice::server::pgwire
