#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_explain_internal.h"

namespace sluice::catalog {

Result<rapidjson::Document> ExplainPostgresSelect(PostgresConnection& connection,
                                                  std::string_view select, bool describe) {
  ASSIGN_OR_RETURN(const PostgresResult result, connection.Explain(select, describe));
  const std::string_view json = PostgresText(result.get(), 0, 0);
  rapidjson::Document document;
  document.Parse(json.data(), json.size());
  if (document.HasParseError() || !document.IsArray() || document.Empty() ||
      !document[0].HasMember("Plan")) {
    return Internal("EXPLAIN gave no plan");
  }
  return document;
}

}  // namespace sluice::catalog
