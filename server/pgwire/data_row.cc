#include "server/pgwire/data_row.h"

#include "server/shell/output.h"

namespace sluice::server::pgwire {

WireType WireTypeOf(const ColumnInfo& column) {
  switch (column.type) {
    case DataType::kBool:
      return {16, 1};
    case DataType::kInt64:
      return {20, 8};
    case DataType::kDouble:
      return {701, 8};
    default:
      return {25, -1};
  }
}

Status AppendDataRow(std::string& out, const RowBatch& batch, size_t row,
                     const std::vector<WireColumn>& columns) {
  std::string body;
  body.push_back(static_cast<char>(columns.size() >> 8U));
  body.push_back(static_cast<char>(columns.size() & 0xffU));
  for (size_t i = 0; i < columns.size(); ++i) {
    const RowBatch::Column& column = batch.columns[i];
    if (column.null[row] != 0) {
      AppendUint32(body, UINT32_MAX);
      continue;
    }
    std::string text = CellText(column, row);
    if (column.type == DataType::kBool) {
      text = column.int64s[row] != 0 ? "t" : "f";
    }
    AppendUint32(body, static_cast<uint32_t>(text.size()));
    body += text;
  }
  AppendMessage(out, 'D', body);
  return OkStatus();
}

}  // namespace sluice::server::pgwire
