// SPDX-License-Identifier: Apache-2.0
#include "documents/reference.hpp"

#include "core/json.hpp"
#include "documents/fields.hpp"
#include "documents/requirements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace reckon::documents {
namespace {

bool is_required(const Rule& rule, const Ref& ref) {
  return rule.presence == Rule::Presence::required && !std::holds_alternative<OptionalRef>(ref.to);
}

/// One element of a list, made for the purpose.
Ref element_of(const ListRef& list) {
  list.resize(list.list, 1);
  return list.at(list.list, 0);
}

constexpr const char* k_repeat =
    R"({"type": "array", "minItems": 3, "maxItems": 3,
        "description": "[count, back, step]: count numbers, each step more than the one back before it.",
        "prefixItems": [{"type": "integer", "minimum": 1, "maximum": 9007199254740992},
                        {"type": "integer", "minimum": 1, "maximum": 9007199254740992},
                        {"type": "integer", "minimum": -9007199254740992, "maximum": 9007199254740992}]})";

class Schema : public Visitor {
public:
  explicit Schema(Json& definitions) : m_definitions(definitions) {}
  Json object{{"type", "object"}, {"additionalProperties", false}};
  std::string name;

  void about(const char* of, const char* sentence, const char* schema) override {
    name = of;
    object["description"] = sentence;
    add(object, schema);
  }

protected:
  void field(const Field& field, const Ref& ref) override {
    Json& schema = object["properties"][field.key];
    schema = std::visit([&](const auto& of) { return schema_of(of, field.rule); }, ref.to);
    schema["description"] = field.sentence;
    add(schema, field.rule.schema);
    if (is_required(field.rule, ref)) {
      object["required"].push_back(field.key);
    }
    if (field.rule.presence == Rule::Presence::defaulted &&
        (std::holds_alternative<WholeRef>(ref.to) || std::holds_alternative<double*>(ref.to))) {
      schema["default"] = json_of(ref, field.rule);
    }
  }

private:
  static void add(Json& schema, const char* more) {
    if (more != nullptr) {
      schema.update(Json::parse(more));
    }
  }
  Json schema_of(const WholeRef& of, const Rule& rule) {
    if (!rule.names.empty()) {
      return {{"enum", std::vector<std::string>(rule.names.begin(), rule.names.end())}};
    }
    return of.truth ? Json{{"type", "boolean"}}
                    : Json{{"type", "integer"},
                           {"minimum", static_cast<std::int64_t>(rule.low)},
                           {"maximum", static_cast<std::int64_t>(rule.high)}};
  }
  Json schema_of(const double*, const Rule& rule) {
    Json schema{{"type", "number"}};
    if (rule.low == 0) {
      schema[rule.above_low ? "exclusiveMinimum" : "minimum"] = 0;
    }
    if (rule.high == 1) {
      schema["maximum"] = 1;
    }
    return schema;
  }
  Json schema_of(const std::string*, const Rule& rule) {
    if (!rule.names.empty()) {
      return {{"enum", std::vector<std::string>(rule.names.begin(), rule.names.end())}};
    }
    if (rule.pattern != nullptr) {
      return {{"type", "string"}, {"maxLength", 256}, {"pattern", rule.pattern->regex}};
    }
    if (rule.text == Rule::Text::name) {
      m_definitions["name"] = Json{{"type", "string"},
                                   {"description", "No control characters."},
                                   {"minLength", 1},
                                   {"maxLength", 256},
                                   {"not", {{"pattern", "[\\u0000-\\u001f\\u007f]"}}}};
      return {{"$ref", "#/$defs/name"}};
    }
    return rule.text == Rule::Text::some ? Json{{"type", "string"}, {"minLength", 1}}
                                         : Json{{"type", "string"}};
  }
  Json schema_of(const Texts*, const Rule&) {
    return {{"type", "object"},
            {"propertyNames", {{"minLength", 1}}},
            {"additionalProperties", {{"type", "string"}}}};
  }
  Json schema_of(const Numbers*, const Rule&) {
    return {{"type", "object"}, {"additionalProperties", {{"type", "number"}}}};
  }
  template <class T>
  Json schema_of(const std::vector<T>*, const Rule& rule) {
    T number = 0;
    Json schema = list_of(Visitor::ref(number), rule);
    if (rule.repeats != Rule::Repeats::none) {
      m_definitions["repeat"] = Json::parse(k_repeat);
      Json either = Json::array();
      either.push_back(std::move(schema["items"]));
      either.push_back({{"$ref", "#/$defs/repeat"}});
      schema["items"] = Json::object();
      schema["items"]["anyOf"] = std::move(either);
    }
    return schema;
  }
  Json schema_of(const OptionalRef& of, const Rule& rule) {
    return std::visit([&](const auto& inside) { return schema_of(inside, rule); },
                      of.get(of.value).to);
  }
  Json schema_of(const ListRef& of, const Rule& rule) {
    Json schema = list_of(element_of(of), rule);
    if (!of.resize(of.list, 1)) {
      schema["minItems"] = schema["maxItems"] = of.size(of.list);
    }
    return schema;
  }
  Json list_of(const Ref& element, const Rule& rule) {
    Json schema{{"type", "array"}};
    schema["items"] = std::visit([&](const auto& of) { return schema_of(of, rule); }, element.to);
    if (rule.element != nullptr) {
      schema["minItems"] = 1;
    }
    return schema;
  }
  Json schema_of(const RecordRef& of, const Rule&) {
    Schema record(m_definitions);
    of.describe(record, of.record);
    m_definitions[record.name] = std::move(record.object);
    return {{"$ref", "#/$defs/" + record.name}};
  }

  Json& m_definitions;
};

/// Where types and fields were listed first, over all documents: "`cells[]` of the profile".
struct Listed {
  std::map<std::string, std::string> types;  ///< by name and definition
  std::map<std::string, std::string> fields; ///< the object, by the field's key and schema
};

/// Rows of the table, from the schema. A type that several fields have is listed where it occurs
/// first, and so are the fields of an object that shares many with an earlier one.
class Rows {
public:
  Rows(std::string_view kind, const Json& schema, Listed& listed)
      : m_kind(kind), m_definitions(schema.at("$defs")), m_listed(listed) {
    add(schema, "");
    for (const auto& [key, path] : m_types) {
      m_listed.types.try_emplace(key, of_kind(path));
    }
    for (const auto& [key, path] : m_fields) {
      m_listed.fields.try_emplace(key, of_kind(path));
    }
  }
  std::string text;

private:
  [[nodiscard]] std::string of_kind(const std::string& path) const {
    return fmt::format("{} of the {}", path, m_kind);
  }

  void add(const Json& object, const std::string& path) {
    const Json required = object.value("required", Json::array());
    const auto id = [&](const std::string& key, const Json& field) {
      const bool needed = std::find(required.begin(), required.end(), key) != required.end();
      return key + (needed ? "!" : "?") + field.dump();
    };
    const std::set<std::string> known = add_known(object, path, id);
    for (const auto& [key, field] : object.at("properties").items()) {
      if (field.contains("const") || known.contains(key)) { // the header
        continue;
      }
      if (!path.empty()) {
        m_fields.try_emplace(id(key, field), fmt::format("`{}`", path.substr(0, path.size() - 1)));
      }
      const bool needed = std::find(required.begin(), required.end(), key) != required.end();
      const std::string row = path + key;
      const std::size_t at = text.size();
      const std::string values = values_of(field, row); // adds the rows below this one
      text.insert(at,
                  fmt::format("| `{}` | {}{} | {} |\n", row, values,
                              needed                      ? ""
                              : field.contains("default") ? "; default " + field["default"].dump()
                                                          : "; optional",
                              field.at("description").get<std::string>()));
    }
  }
  /// One row for the fields that an earlier object has, too, where they are at least five; returns
  /// their keys.
  template <class Id>
  std::set<std::string> add_known(const Json& object, const std::string& path, const Id& id) {
    std::map<std::string, std::set<std::string>> by_object;
    for (const auto& [key, field] : object.at("properties").items()) {
      for (const auto* fields : {&m_fields, &m_listed.fields}) {
        if (const auto found = fields->find(id(key, field)); found != fields->end()) {
          by_object[found->second].insert(key);
          break;
        }
      }
    }
    for (const auto& [first, keys] : by_object) {
      if (keys.size() >= 5) {
        text += fmt::format("| `{}` | as {} | The fields `{}`. |\n",
                            path.substr(0, path.size() - 1), first, fmt::join(keys, "`, `"));
        return keys;
      }
    }
    return {};
  }
  std::string values_of(const Json& field, const std::string& path) {
    if (field.contains("$ref")) {
      const auto reference = field.at("$ref").get<std::string>();
      const std::string name = reference.substr(reference.rfind('/') + 1);
      if (name == "name") {
        return name;
      }
      const std::string type = name + m_definitions.at(name).dump();
      if (const auto before = m_listed.types.find(type); before != m_listed.types.end()) {
        return "as " + before->second;
      }
      const auto [first, added] = m_types.try_emplace(type, fmt::format("`{}`", path));
      if (added) {
        add(m_definitions.at(name), path + ".");
      }
      return added ? "object" : "as " + first->second;
    }
    if (field.contains("anyOf")) {
      return values_of(field.at("anyOf")[0], path) + " or repeat";
    }
    if (field.contains("enum")) {
      const auto names = field.at("enum").get<std::vector<std::string>>();
      return fmt::format("`{}`", fmt::join(names, "`, `"));
    }
    const auto type = field.at("type").get<std::string>();
    if (type == "array") {
      const char* const list = field.contains("maxItems")   ? "list of {}: "
                               : field.contains("minItems") ? "list of {} or more: "
                                                            : "list: ";
      return fmt::format(fmt::runtime(list), field.value("minItems", 0)) +
             values_of(field.at("items"), path + "[]");
    }
    if (type == "object") {
      return field.at("additionalProperties").at("type").get<std::string>() + " by name";
    }
    if (field.contains("pattern")) {
      return fmt::format("{} like `{}`", type, in_table(field.at("pattern").get<std::string>()));
    }
    std::string limits = field.contains("minLength") ? ", not empty" : "";
    for (const auto& [key, sign] : {std::pair("exclusiveMinimum", ">"), std::pair("minimum", ">="),
                                    std::pair("maximum", "<=")}) {
      if (field.contains(key) && field.at(key) != k_max_count) {
        limits += fmt::format("{} {} {}", limits.empty() ? "" : ",", sign, field.at(key).dump());
      }
    }
    return type + limits;
  }

  static std::string in_table(std::string text) {
    for (std::size_t i = text.find('|'); i != text.npos; i = text.find('|', i + 2)) {
      text.insert(i, "\\");
    }
    return text;
  }

  std::string_view m_kind;
  const Json& m_definitions;
  Listed& m_listed;                           // by the documents before this one
  std::map<std::string, std::string> m_types; // of this document
  std::map<std::string, std::string> m_fields;
};

} // namespace

Json schema_of(std::string_view kind) {
  Json definitions = Json::object();
  Schema schema(definitions);
  const auto add = [&](auto document) { describe(schema, document); };
  kind == "profile"    ? add(Profile())
  : kind == "workload" ? add(Workload())
  : kind == "roles"    ? add(Roles())
  : kind == "plan"     ? add(Plan())
  : kind == "report"   ? add(Report())
                       : add(Requirements());
  Json& json = schema.object;
  json["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  json["title"] = fmt::format("reckon {}", kind);
  json["$defs"] = definitions;
  json["required"].push_back("schema");
  json["required"].push_back("schema_version");
  json["properties"]["schema"] = {{"const", fmt::format("reckon/{}", kind)},
                                  {"description", "What kind of document this is."}};
  json["properties"]["schema_version"] = {
      {"const", k_schema_version},
      {"description", "Version of this schema; a reader refuses a newer one."}};
  return json;
}

std::string field_reference() {
  std::string text =
      "# Fields of the documents\n\n"
      "`reckon reference documents` writes this page. A dot leads into an object, [] into the "
      "elements of a list. Every document also has `schema`, \"reckon/\" and its kind, and "
      "`schema_version`, which is 1. A repeat stands for numbers of a list: [count, back, step] "
      "is count numbers, each step more than the one back places before it.\n";
  Listed listed;
  for (const std::string_view kind : k_schema_kinds) {
    text += fmt::format("\n## {}\n\n| field | value | meaning |\n|---|---|---|\n{}", kind,
                        Rows(kind, schema_of(kind), listed).text);
  }
  return text;
}

} // namespace reckon::documents
