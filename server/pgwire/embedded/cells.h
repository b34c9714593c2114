#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/embedded_session.h"
#include "server/pgwire/messages.h"

// Stored values in the form that clients receive. A column may hold any value, whatever type it was
// declared with. Pure; thread-safe.
namespace sluice::server::pgwire {

// A cell that outlives its row.
struct KeptCell {
  catalog::EmbeddedCell cell;
  std::string bytes;
  explicit KeptCell(const catalog::EmbeddedCell& from) : cell(from), bytes(from.bytes) {}
  catalog::EmbeddedCell Get() const {
    catalog::EmbeddedCell copy = cell;
    copy.bytes = bytes;
    return copy;
  }
};

// Appends the field of a DataRow. Every value has a text form, even if it does not fit the column's
// type; in binary that is 22P03.
Status AppendField(const catalog::EmbeddedCell& cell, const WireColumn& column, std::string* out);

// The cell as text, also for COPY.
std::string CellText(const catalog::EmbeddedCell& cell, uint32_t type);

// How a result's columns are described. `formats`: as in Bind; an expression of unknown type is
// text.
Result<std::vector<WireColumn>> DescribeColumns(const catalog::EmbeddedStatement& statement,
                                                const std::vector<uint16_t>& formats);

// A column's type from its first cells: the declared one if all of them fit it, else one that fits
// them all.
ColumnType TypeOfCells(const catalog::DeclaredType& declared,
                       const std::vector<catalog::EmbeddedCell>& cells);

// Binds $`number`: numbers as numbers, bytes as bytes, everything else as its text. 22P02, 22P03,
// 22021: the value does not fit its type.
Status BindParameter(catalog::EmbeddedStatement& statement, size_t number, uint32_t type,
                     bool binary, std::optional<std::string_view> value);

}  // namespace sluice::server::pgwire
