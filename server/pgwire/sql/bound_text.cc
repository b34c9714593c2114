#include "server/pgwire/sql/bound_text.h"

#include <algorithm>
#include <utility>

#include "parser/printer.h"
#include "parser/splitter.h"
#include "server/pgwire/sql/column_types.h"
#include "server/pgwire/sql/parameters.h"
#include "server/pgwire/sql/sql_words_internal.h"

namespace sluice::server::pgwire {
Span BoundText::PlaceOf(Span span) const {
  const auto moved = [this](int64_t place) {
    int64_t shift = 0;
    for (const Replaced& part : replaced) {
      if (place < part.new_begin) {
        break;
      }
      if (place < part.new_end) {
        return part.old_begin;
      }
      shift = part.old_end - part.new_end;
    }
    return place + shift;
  };
  return span.valid() ? Span{moved(span.begin), moved(span.end)} : span;
}

Status BoundText::Moved(const Status& status) const {
  Status moved;
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    moved.Add(Status(diagnostic.code, diagnostic.message)
                  .SqlState(diagnostic.sqlstate)
                  .At(PlaceOf(diagnostic.span))
                  .Detail(diagnostic.detail)
                  .Hint(diagnostic.hint));
  }
  return moved;
}

std::vector<ParameterPlace> FindParameters(std::string_view sql) {
  constexpr size_t kMost = 65'535;  // Bind has room for so many
  std::vector<ParameterPlace> places;
  ScanCode(sql, [sql, &places](size_t begin, size_t end) {
    size_t number = 0;
    for (size_t at = begin + 1; sql[begin] == '$' && at < end && number <= kMost; ++at) {
      number = number * 10 + static_cast<size_t>(sql[at] - '0');
    }
    if (number >= 1 && number <= kMost) {
      places.push_back({number, begin, end});
    }
    return false;
  });
  return places;
}

size_t CountParameters(std::string_view sql) {
  size_t most = 0;
  for (const ParameterPlace& place : FindParameters(sql)) {
    most = std::max(most, place.number);
  }
  return most;
}

Result<BoundText> Substitute(std::string_view sql, const ParameterText& text_of) {
  BoundText bound;
  const parser::SplitScript split = parser::Split(sql);
  const auto in_clauses = [&split](size_t at) {
    return std::any_of(split.pieces.begin(), split.pieces.end(), [at](const parser::Piece& piece) {
      return piece.clauses.valid() && static_cast<int64_t>(at) >= piece.clauses.begin &&
             static_cast<int64_t>(at) < piece.clauses.end;
    });
  };
  size_t copied = 0;
  for (const ParameterPlace& place : FindParameters(sql)) {
    const Span span = {static_cast<int64_t>(place.begin), static_cast<int64_t>(place.end)};
    const auto text = text_of(place, in_clauses(place.begin));
    RETURN_IF_ERROR(text.status().MovedTo(span));
    bound.text += sql.substr(copied, place.begin - copied);
    const auto begin = static_cast<int64_t>(bound.text.size());
    bound.text += *text;
    bound.replaced.push_back(
        {span.begin, span.end, begin, static_cast<int64_t>(bound.text.size())});
    copied = place.end;
  }
  bound.text += sql.substr(copied);
  return bound;
}

uint16_t FormatOf(const std::vector<uint16_t>& formats, size_t index) {
  return formats.empty() ? uint16_t{0}
                         : formats[formats.size() == 1 ? 0 : std::min(index, formats.size() - 1)];
}

namespace {

bool IsKnown(uint32_t type) {
  return type == kUnspecifiedOid || type == kUnknownOid || FindBuiltInType(type) != nullptr ||
         FindElementType(type) != nullptr;
}

}  // namespace

std::vector<size_t> StrangeParameters(const std::vector<uint32_t>& types,
                                      const std::vector<uint16_t>& formats) {
  std::vector<size_t> strange;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool has_type = types[i] != kUnspecifiedOid && types[i] != kUnknownOid;
    if (!IsKnown(types[i]) || (has_type && FormatOf(formats, i) == 1 && !HasBinaryForm(types[i]))) {
      strange.push_back(i);
    }
  }
  return strange;
}

Result<BoundText> BindText(std::string_view sql, const std::vector<uint32_t>& types,
                           const std::vector<uint16_t>& formats,
                           const std::vector<std::optional<std::string>>* values,
                           catalog::Dialect dialect, const ShownParameters& shown) {
  return Substitute(sql, [&](const ParameterPlace& place, bool attribute) -> Result<std::string> {
    const size_t index = place.number - 1;
    BoundParameter parameter;
    parameter.type = index < types.size() ? types[index] : 0;
    std::string_view type_name;
    if (const auto said = shown.find(index); said != shown.end()) {
      type_name = said->second.type_name;
      if (said->second.text.has_value()) {
        parameter.value = *said->second.text;
      }
    } else if (values != nullptr && (*values)[index].has_value()) {
      parameter.value = *(*values)[index];
      parameter.binary = FormatOf(formats, index) == 1;
    } else if (values == nullptr && !IsKnown(parameter.type)) {
      parameter.type = kUnspecifiedOid;
    }
    if (!attribute) {
      return dialect == catalog::Dialect::kPostgres ? ParameterLiteral(parameter, type_name)
                                                    : SqliteLiteral(parameter);
    }
    const Span span = {static_cast<int64_t>(place.begin), static_cast<int64_t>(place.end)};
    ASSIGN_OR_RETURN(const parser::AttributeValue value, ParameterAttribute(parameter, span));
    return parser::Print(value);
  });
}

}  // namespace sluice::server::pgwire
