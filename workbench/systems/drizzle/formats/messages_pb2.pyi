from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StorageEngine(_message.Message):
    __slots__ = ("name", "options")
    class Opt(_message.Message):
        __slots__ = ("name", "state")
        NAME_FIELD_NUMBER: _ClassVar[int]
        STATE_FIELD_NUMBER: _ClassVar[int]
        name: str
        state: str
        def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    options: _containers.RepeatedCompositeFieldContainer[StorageEngine.Opt]
    def __init__(self, name: _Optional[str] = ..., options: _Optional[_Iterable[_Union[StorageEngine.Opt, _Mapping]]] = ...) -> None: ...

class ReplOpts(_message.Message):
    __slots__ = ("is_replicated",)
    IS_REPLICATED_FIELD_NUMBER: _ClassVar[int]
    is_replicated: bool
    def __init__(self, is_replicated: _Optional[bool] = ...) -> None: ...

class AccessInfo(_message.Message):
    __slots__ = ("definer", "invoker")
    DEFINER_FIELD_NUMBER: _ClassVar[int]
    INVOKER_FIELD_NUMBER: _ClassVar[int]
    definer: str
    invoker: str
    def __init__(self, definer: _Optional[str] = ..., invoker: _Optional[str] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("name", "engine", "field", "indexes", "type", "schema", "fk_constraint", "options", "creation_timestamp", "update_timestamp", "catalog", "uuid", "version", "replication_options", "access")
    class TableType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STANDARD: _ClassVar[Table.TableType]
        TEMPORARY: _ClassVar[Table.TableType]
        INTERNAL: _ClassVar[Table.TableType]
        FUNCTION: _ClassVar[Table.TableType]
    STANDARD: Table.TableType
    TEMPORARY: Table.TableType
    INTERNAL: Table.TableType
    FUNCTION: Table.TableType
    class TableOptions(_message.Message):
        __slots__ = ("has_user_set_auto_increment_value", "collation", "collation_id", "data_file_name", "index_file_name", "max_rows", "min_rows", "auto_increment_value", "avg_row_length", "block_size", "comment", "pack_record", "checksum", "page_checksum", "delay_key_write", "unused")
        HAS_USER_SET_AUTO_INCREMENT_VALUE_FIELD_NUMBER: _ClassVar[int]
        COLLATION_FIELD_NUMBER: _ClassVar[int]
        COLLATION_ID_FIELD_NUMBER: _ClassVar[int]
        DATA_FILE_NAME_FIELD_NUMBER: _ClassVar[int]
        INDEX_FILE_NAME_FIELD_NUMBER: _ClassVar[int]
        MAX_ROWS_FIELD_NUMBER: _ClassVar[int]
        MIN_ROWS_FIELD_NUMBER: _ClassVar[int]
        AUTO_INCREMENT_VALUE_FIELD_NUMBER: _ClassVar[int]
        AVG_ROW_LENGTH_FIELD_NUMBER: _ClassVar[int]
        BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
        COMMENT_FIELD_NUMBER: _ClassVar[int]
        PACK_RECORD_FIELD_NUMBER: _ClassVar[int]
        CHECKSUM_FIELD_NUMBER: _ClassVar[int]
        PAGE_CHECKSUM_FIELD_NUMBER: _ClassVar[int]
        DELAY_KEY_WRITE_FIELD_NUMBER: _ClassVar[int]
        UNUSED_FIELD_NUMBER: _ClassVar[int]
        has_user_set_auto_increment_value: bool
        collation: str
        collation_id: int
        data_file_name: str
        index_file_name: str
        max_rows: int
        min_rows: int
        auto_increment_value: int
        avg_row_length: int
        block_size: int
        comment: str
        pack_record: bool
        checksum: bool
        page_checksum: bool
        delay_key_write: bool
        unused: bool
        def __init__(self, has_user_set_auto_increment_value: _Optional[bool] = ..., collation: _Optional[str] = ..., collation_id: _Optional[int] = ..., data_file_name: _Optional[str] = ..., index_file_name: _Optional[str] = ..., max_rows: _Optional[int] = ..., min_rows: _Optional[int] = ..., auto_increment_value: _Optional[int] = ..., avg_row_length: _Optional[int] = ..., block_size: _Optional[int] = ..., comment: _Optional[str] = ..., pack_record: _Optional[bool] = ..., checksum: _Optional[bool] = ..., page_checksum: _Optional[bool] = ..., delay_key_write: _Optional[bool] = ..., unused: _Optional[bool] = ...) -> None: ...
    class ForeignKeyConstraint(_message.Message):
        __slots__ = ("name", "column_names", "references_table_name", "references_columns", "match", "update_option", "delete_option")
        class Match(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            MATCH_UNDEFINED: _ClassVar[Table.ForeignKeyConstraint.Match]
            MATCH_FULL: _ClassVar[Table.ForeignKeyConstraint.Match]
            MATCH_PARTIAL: _ClassVar[Table.ForeignKeyConstraint.Match]
            MATCH_SIMPLE: _ClassVar[Table.ForeignKeyConstraint.Match]
        MATCH_UNDEFINED: Table.ForeignKeyConstraint.Match
        MATCH_FULL: Table.ForeignKeyConstraint.Match
        MATCH_PARTIAL: Table.ForeignKeyConstraint.Match
        MATCH_SIMPLE: Table.ForeignKeyConstraint.Match
        class Option(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            OPTION_UNDEF: _ClassVar[Table.ForeignKeyConstraint.Option]
            OPTION_RESTRICT: _ClassVar[Table.ForeignKeyConstraint.Option]
            OPTION_CASCADE: _ClassVar[Table.ForeignKeyConstraint.Option]
            OPTION_SET_NULL: _ClassVar[Table.ForeignKeyConstraint.Option]
            OPTION_NO_ACTION: _ClassVar[Table.ForeignKeyConstraint.Option]
            OPTION_SET_DEFAULT: _ClassVar[Table.ForeignKeyConstraint.Option]
        OPTION_UNDEF: Table.ForeignKeyConstraint.Option
        OPTION_RESTRICT: Table.ForeignKeyConstraint.Option
        OPTION_CASCADE: Table.ForeignKeyConstraint.Option
        OPTION_SET_NULL: Table.ForeignKeyConstraint.Option
        OPTION_NO_ACTION: Table.ForeignKeyConstraint.Option
        OPTION_SET_DEFAULT: Table.ForeignKeyConstraint.Option
        NAME_FIELD_NUMBER: _ClassVar[int]
        COLUMN_NAMES_FIELD_NUMBER: _ClassVar[int]
        REFERENCES_TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
        REFERENCES_COLUMNS_FIELD_NUMBER: _ClassVar[int]
        MATCH_FIELD_NUMBER: _ClassVar[int]
        UPDATE_OPTION_FIELD_NUMBER: _ClassVar[int]
        DELETE_OPTION_FIELD_NUMBER: _ClassVar[int]
        name: str
        column_names: _containers.RepeatedScalarFieldContainer[str]
        references_table_name: str
        references_columns: _containers.RepeatedScalarFieldContainer[str]
        match: Table.ForeignKeyConstraint.Match
        update_option: Table.ForeignKeyConstraint.Option
        delete_option: Table.ForeignKeyConstraint.Option
        def __init__(self, name: _Optional[str] = ..., column_names: _Optional[_Iterable[str]] = ..., references_table_name: _Optional[str] = ..., references_columns: _Optional[_Iterable[str]] = ..., match: _Optional[_Union[Table.ForeignKeyConstraint.Match, str]] = ..., update_option: _Optional[_Union[Table.ForeignKeyConstraint.Option, str]] = ..., delete_option: _Optional[_Union[Table.ForeignKeyConstraint.Option, str]] = ...) -> None: ...
    class Field(_message.Message):
        __slots__ = ("name", "type", "options", "constraints", "numeric_options", "string_options", "time_options", "comment", "enumeration_values")
        class FieldType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            DOUBLE: _ClassVar[Table.Field.FieldType]
            VARCHAR: _ClassVar[Table.Field.FieldType]
            BLOB: _ClassVar[Table.Field.FieldType]
            ENUM: _ClassVar[Table.Field.FieldType]
            INTEGER: _ClassVar[Table.Field.FieldType]
            BIGINT: _ClassVar[Table.Field.FieldType]
            DECIMAL: _ClassVar[Table.Field.FieldType]
            DATE: _ClassVar[Table.Field.FieldType]
            EPOCH: _ClassVar[Table.Field.FieldType]
            DATETIME: _ClassVar[Table.Field.FieldType]
            UUID: _ClassVar[Table.Field.FieldType]
            TIME: _ClassVar[Table.Field.FieldType]
            BOOLEAN: _ClassVar[Table.Field.FieldType]
            IPV6: _ClassVar[Table.Field.FieldType]
        DOUBLE: Table.Field.FieldType
        VARCHAR: Table.Field.FieldType
        BLOB: Table.Field.FieldType
        ENUM: Table.Field.FieldType
        INTEGER: Table.Field.FieldType
        BIGINT: Table.Field.FieldType
        DECIMAL: Table.Field.FieldType
        DATE: Table.Field.FieldType
        EPOCH: Table.Field.FieldType
        DATETIME: Table.Field.FieldType
        UUID: Table.Field.FieldType
        TIME: Table.Field.FieldType
        BOOLEAN: Table.Field.FieldType
        IPV6: Table.Field.FieldType
        class FieldOptions(_message.Message):
            __slots__ = ("default_value", "update_value", "default_null", "default_bin_value", "default_expression", "update_expression")
            DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
            UPDATE_VALUE_FIELD_NUMBER: _ClassVar[int]
            DEFAULT_NULL_FIELD_NUMBER: _ClassVar[int]
            DEFAULT_BIN_VALUE_FIELD_NUMBER: _ClassVar[int]
            DEFAULT_EXPRESSION_FIELD_NUMBER: _ClassVar[int]
            UPDATE_EXPRESSION_FIELD_NUMBER: _ClassVar[int]
            default_value: str
            update_value: str
            default_null: bool
            default_bin_value: bytes
            default_expression: str
            update_expression: str
            def __init__(self, default_value: _Optional[str] = ..., update_value: _Optional[str] = ..., default_null: _Optional[bool] = ..., default_bin_value: _Optional[bytes] = ..., default_expression: _Optional[str] = ..., update_expression: _Optional[str] = ...) -> None: ...
        class FieldConstraints(_message.Message):
            __slots__ = ("is_nullable", "is_unsigned", "is_notnull", "is_unique", "expression")
            IS_NULLABLE_FIELD_NUMBER: _ClassVar[int]
            IS_UNSIGNED_FIELD_NUMBER: _ClassVar[int]
            IS_NOTNULL_FIELD_NUMBER: _ClassVar[int]
            IS_UNIQUE_FIELD_NUMBER: _ClassVar[int]
            EXPRESSION_FIELD_NUMBER: _ClassVar[int]
            is_nullable: bool
            is_unsigned: bool
            is_notnull: bool
            is_unique: bool
            expression: _containers.RepeatedScalarFieldContainer[str]
            def __init__(self, is_nullable: _Optional[bool] = ..., is_unsigned: _Optional[bool] = ..., is_notnull: _Optional[bool] = ..., is_unique: _Optional[bool] = ..., expression: _Optional[_Iterable[str]] = ...) -> None: ...
        class NumericOptions(_message.Message):
            __slots__ = ("is_autoincrement", "scale", "precision")
            IS_AUTOINCREMENT_FIELD_NUMBER: _ClassVar[int]
            SCALE_FIELD_NUMBER: _ClassVar[int]
            PRECISION_FIELD_NUMBER: _ClassVar[int]
            is_autoincrement: bool
            scale: int
            precision: int
            def __init__(self, is_autoincrement: _Optional[bool] = ..., scale: _Optional[int] = ..., precision: _Optional[int] = ...) -> None: ...
        class StringOptions(_message.Message):
            __slots__ = ("is_fixed_width", "length", "collation_id", "collation")
            IS_FIXED_WIDTH_FIELD_NUMBER: _ClassVar[int]
            LENGTH_FIELD_NUMBER: _ClassVar[int]
            COLLATION_ID_FIELD_NUMBER: _ClassVar[int]
            COLLATION_FIELD_NUMBER: _ClassVar[int]
            is_fixed_width: bool
            length: int
            collation_id: int
            collation: str
            def __init__(self, is_fixed_width: _Optional[bool] = ..., length: _Optional[int] = ..., collation_id: _Optional[int] = ..., collation: _Optional[str] = ...) -> None: ...
        class EnumValues(_message.Message):
            __slots__ = ("collation_id", "collation", "field_value")
            COLLATION_ID_FIELD_NUMBER: _ClassVar[int]
            COLLATION_FIELD_NUMBER: _ClassVar[int]
            FIELD_VALUE_FIELD_NUMBER: _ClassVar[int]
            collation_id: int
            collation: str
            field_value: _containers.RepeatedScalarFieldContainer[str]
            def __init__(self, collation_id: _Optional[int] = ..., collation: _Optional[str] = ..., field_value: _Optional[_Iterable[str]] = ...) -> None: ...
        class TimeOptions(_message.Message):
            __slots__ = ("microseconds",)
            MICROSECONDS_FIELD_NUMBER: _ClassVar[int]
            microseconds: bool
            def __init__(self, microseconds: _Optional[bool] = ...) -> None: ...
        NAME_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        OPTIONS_FIELD_NUMBER: _ClassVar[int]
        CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
        NUMERIC_OPTIONS_FIELD_NUMBER: _ClassVar[int]
        STRING_OPTIONS_FIELD_NUMBER: _ClassVar[int]
        TIME_OPTIONS_FIELD_NUMBER: _ClassVar[int]
        COMMENT_FIELD_NUMBER: _ClassVar[int]
        ENUMERATION_VALUES_FIELD_NUMBER: _ClassVar[int]
        name: str
        type: Table.Field.FieldType
        options: Table.Field.FieldOptions
        constraints: Table.Field.FieldConstraints
        numeric_options: Table.Field.NumericOptions
        string_options: Table.Field.StringOptions
        time_options: Table.Field.TimeOptions
        comment: str
        enumeration_values: Table.Field.EnumValues
        def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Table.Field.FieldType, str]] = ..., options: _Optional[_Union[Table.Field.FieldOptions, _Mapping]] = ..., constraints: _Optional[_Union[Table.Field.FieldConstraints, _Mapping]] = ..., numeric_options: _Optional[_Union[Table.Field.NumericOptions, _Mapping]] = ..., string_options: _Optional[_Union[Table.Field.StringOptions, _Mapping]] = ..., time_options: _Optional[_Union[Table.Field.TimeOptions, _Mapping]] = ..., comment: _Optional[str] = ..., enumeration_values: _Optional[_Union[Table.Field.EnumValues, _Mapping]] = ...) -> None: ...
    class Index(_message.Message):
        __slots__ = ("name", "is_primary", "is_unique", "type", "key_length", "index_part", "options", "comment")
        class IndexType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            UNKNOWN_INDEX: _ClassVar[Table.Index.IndexType]
            BTREE: _ClassVar[Table.Index.IndexType]
            RTREE: _ClassVar[Table.Index.IndexType]
            HASH: _ClassVar[Table.Index.IndexType]
            FULLTEXT: _ClassVar[Table.Index.IndexType]
            LSMTREE: _ClassVar[Table.Index.IndexType]
        UNKNOWN_INDEX: Table.Index.IndexType
        BTREE: Table.Index.IndexType
        RTREE: Table.Index.IndexType
        HASH: Table.Index.IndexType
        FULLTEXT: Table.Index.IndexType
        LSMTREE: Table.Index.IndexType
        class IndexPart(_message.Message):
            __slots__ = ("fieldnr", "compare_length", "in_reverse_order")
            FIELDNR_FIELD_NUMBER: _ClassVar[int]
            COMPARE_LENGTH_FIELD_NUMBER: _ClassVar[int]
            IN_REVERSE_ORDER_FIELD_NUMBER: _ClassVar[int]
            fieldnr: int
            compare_length: int
            in_reverse_order: bool
            def __init__(self, fieldnr: _Optional[int] = ..., compare_length: _Optional[int] = ..., in_reverse_order: _Optional[bool] = ...) -> None: ...
        class Options(_message.Message):
            __slots__ = ("pack_key", "binary_pack_key", "var_length_key", "null_part_key", "key_block_size", "has_partial_segments", "auto_generated_key")
            PACK_KEY_FIELD_NUMBER: _ClassVar[int]
            BINARY_PACK_KEY_FIELD_NUMBER: _ClassVar[int]
            VAR_LENGTH_KEY_FIELD_NUMBER: _ClassVar[int]
            NULL_PART_KEY_FIELD_NUMBER: _ClassVar[int]
            KEY_BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
            HAS_PARTIAL_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
            AUTO_GENERATED_KEY_FIELD_NUMBER: _ClassVar[int]
            pack_key: bool
            binary_pack_key: bool
            var_length_key: bool
            null_part_key: bool
            key_block_size: int
            has_partial_segments: bool
            auto_generated_key: bool
            def __init__(self, pack_key: _Optional[bool] = ..., binary_pack_key: _Optional[bool] = ..., var_length_key: _Optional[bool] = ..., null_part_key: _Optional[bool] = ..., key_block_size: _Optional[int] = ..., has_partial_segments: _Optional[bool] = ..., auto_generated_key: _Optional[bool] = ...) -> None: ...
        NAME_FIELD_NUMBER: _ClassVar[int]
        IS_PRIMARY_FIELD_NUMBER: _ClassVar[int]
        IS_UNIQUE_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        KEY_LENGTH_FIELD_NUMBER: _ClassVar[int]
        INDEX_PART_FIELD_NUMBER: _ClassVar[int]
        OPTIONS_FIELD_NUMBER: _ClassVar[int]
        COMMENT_FIELD_NUMBER: _ClassVar[int]
        name: str
        is_primary: bool
        is_unique: bool
        type: Table.Index.IndexType
        key_length: int
        index_part: _containers.RepeatedCompositeFieldContainer[Table.Index.IndexPart]
        options: Table.Index.Options
        comment: str
        def __init__(self, name: _Optional[str] = ..., is_primary: _Optional[bool] = ..., is_unique: _Optional[bool] = ..., type: _Optional[_Union[Table.Index.IndexType, str]] = ..., key_length: _Optional[int] = ..., index_part: _Optional[_Iterable[_Union[Table.Index.IndexPart, _Mapping]]] = ..., options: _Optional[_Union[Table.Index.Options, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    FK_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    engine: StorageEngine
    field: _containers.RepeatedCompositeFieldContainer[Table.Field]
    indexes: _containers.RepeatedCompositeFieldContainer[Table.Index]
    type: Table.TableType
    schema: str
    fk_constraint: _containers.RepeatedCompositeFieldContainer[Table.ForeignKeyConstraint]
    options: Table.TableOptions
    creation_timestamp: int
    update_timestamp: int
    catalog: str
    uuid: str
    version: int
    replication_options: ReplOpts
    access: AccessInfo
    def __init__(self, name: _Optional[str] = ..., engine: _Optional[_Union[StorageEngine, _Mapping]] = ..., field: _Optional[_Iterable[_Union[Table.Field, _Mapping]]] = ..., indexes: _Optional[_Iterable[_Union[Table.Index, _Mapping]]] = ..., type: _Optional[_Union[Table.TableType, str]] = ..., schema: _Optional[str] = ..., fk_constraint: _Optional[_Iterable[_Union[Table.ForeignKeyConstraint, _Mapping]]] = ..., options: _Optional[_Union[Table.TableOptions, _Mapping]] = ..., creation_timestamp: _Optional[int] = ..., update_timestamp: _Optional[int] = ..., catalog: _Optional[str] = ..., uuid: _Optional[str] = ..., version: _Optional[int] = ..., replication_options: _Optional[_Union[ReplOpts, _Mapping]] = ..., access: _Optional[_Union[AccessInfo, _Mapping]] = ...) -> None: ...

class Schema(_message.Message):
    __slots__ = ("name", "collation", "engine", "catalog", "creation_timestamp", "update_timestamp", "uuid", "version", "options", "replication_options", "access")
    class Options(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLLATION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    collation: str
    engine: StorageEngine
    catalog: str
    creation_timestamp: int
    update_timestamp: int
    uuid: str
    version: int
    options: Schema.Options
    replication_options: ReplOpts
    access: AccessInfo
    def __init__(self, name: _Optional[str] = ..., collation: _Optional[str] = ..., engine: _Optional[_Union[StorageEngine, _Mapping]] = ..., catalog: _Optional[str] = ..., creation_timestamp: _Optional[int] = ..., update_timestamp: _Optional[int] = ..., uuid: _Optional[str] = ..., version: _Optional[int] = ..., options: _Optional[_Union[Schema.Options, _Mapping]] = ..., replication_options: _Optional[_Union[ReplOpts, _Mapping]] = ..., access: _Optional[_Union[AccessInfo, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("type",)
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STARTUP: _ClassVar[Event.Type]
        SHUTDOWN: _ClassVar[Event.Type]
    STARTUP: Event.Type
    SHUTDOWN: Event.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: Event.Type
    def __init__(self, type: _Optional[_Union[Event.Type, str]] = ...) -> None: ...

class FieldMetadata(_message.Message):
    __slots__ = ("type", "name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    type: Table.Field.FieldType
    name: str
    def __init__(self, type: _Optional[_Union[Table.Field.FieldType, str]] = ..., name: _Optional[str] = ...) -> None: ...

class TableMetadata(_message.Message):
    __slots__ = ("schema_name", "table_name", "catalog_name")
    SCHEMA_NAME_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    schema_name: str
    table_name: str
    catalog_name: str
    def __init__(self, schema_name: _Optional[str] = ..., table_name: _Optional[str] = ..., catalog_name: _Optional[str] = ...) -> None: ...

class TransactionContext(_message.Message):
    __slots__ = ("server_id", "transaction_id", "start_timestamp", "end_timestamp")
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    END_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    server_id: int
    transaction_id: int
    start_timestamp: int
    end_timestamp: int
    def __init__(self, server_id: _Optional[int] = ..., transaction_id: _Optional[int] = ..., start_timestamp: _Optional[int] = ..., end_timestamp: _Optional[int] = ...) -> None: ...

class InsertRecord(_message.Message):
    __slots__ = ("insert_value", "is_null")
    INSERT_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_NULL_FIELD_NUMBER: _ClassVar[int]
    insert_value: _containers.RepeatedScalarFieldContainer[bytes]
    is_null: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, insert_value: _Optional[_Iterable[bytes]] = ..., is_null: _Optional[_Iterable[bool]] = ...) -> None: ...

class InsertHeader(_message.Message):
    __slots__ = ("table_metadata", "field_metadata")
    TABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    FIELD_METADATA_FIELD_NUMBER: _ClassVar[int]
    table_metadata: TableMetadata
    field_metadata: _containers.RepeatedCompositeFieldContainer[FieldMetadata]
    def __init__(self, table_metadata: _Optional[_Union[TableMetadata, _Mapping]] = ..., field_metadata: _Optional[_Iterable[_Union[FieldMetadata, _Mapping]]] = ...) -> None: ...

class InsertData(_message.Message):
    __slots__ = ("segment_id", "end_segment", "record")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    END_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    segment_id: int
    end_segment: bool
    record: _containers.RepeatedCompositeFieldContainer[InsertRecord]
    def __init__(self, segment_id: _Optional[int] = ..., end_segment: _Optional[bool] = ..., record: _Optional[_Iterable[_Union[InsertRecord, _Mapping]]] = ...) -> None: ...

class UpdateRecord(_message.Message):
    __slots__ = ("key_value", "after_value", "before_value", "is_null")
    KEY_VALUE_FIELD_NUMBER: _ClassVar[int]
    AFTER_VALUE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_NULL_FIELD_NUMBER: _ClassVar[int]
    key_value: _containers.RepeatedScalarFieldContainer[bytes]
    after_value: _containers.RepeatedScalarFieldContainer[bytes]
    before_value: _containers.RepeatedScalarFieldContainer[bytes]
    is_null: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, key_value: _Optional[_Iterable[bytes]] = ..., after_value: _Optional[_Iterable[bytes]] = ..., before_value: _Optional[_Iterable[bytes]] = ..., is_null: _Optional[_Iterable[bool]] = ...) -> None: ...

class UpdateHeader(_message.Message):
    __slots__ = ("table_metadata", "key_field_metadata", "set_field_metadata")
    TABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_METADATA_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_METADATA_FIELD_NUMBER: _ClassVar[int]
    table_metadata: TableMetadata
    key_field_metadata: _containers.RepeatedCompositeFieldContainer[FieldMetadata]
    set_field_metadata: _containers.RepeatedCompositeFieldContainer[FieldMetadata]
    def __init__(self, table_metadata: _Optional[_Union[TableMetadata, _Mapping]] = ..., key_field_metadata: _Optional[_Iterable[_Union[FieldMetadata, _Mapping]]] = ..., set_field_metadata: _Optional[_Iterable[_Union[FieldMetadata, _Mapping]]] = ...) -> None: ...

class UpdateData(_message.Message):
    __slots__ = ("segment_id", "end_segment", "record")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    END_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    segment_id: int
    end_segment: bool
    record: _containers.RepeatedCompositeFieldContainer[UpdateRecord]
    def __init__(self, segment_id: _Optional[int] = ..., end_segment: _Optional[bool] = ..., record: _Optional[_Iterable[_Union[UpdateRecord, _Mapping]]] = ...) -> None: ...

class DeleteRecord(_message.Message):
    __slots__ = ("key_value",)
    KEY_VALUE_FIELD_NUMBER: _ClassVar[int]
    key_value: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, key_value: _Optional[_Iterable[bytes]] = ...) -> None: ...

class DeleteHeader(_message.Message):
    __slots__ = ("table_metadata", "key_field_metadata")
    TABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_METADATA_FIELD_NUMBER: _ClassVar[int]
    table_metadata: TableMetadata
    key_field_metadata: _containers.RepeatedCompositeFieldContainer[FieldMetadata]
    def __init__(self, table_metadata: _Optional[_Union[TableMetadata, _Mapping]] = ..., key_field_metadata: _Optional[_Iterable[_Union[FieldMetadata, _Mapping]]] = ...) -> None: ...

class DeleteData(_message.Message):
    __slots__ = ("segment_id", "end_segment", "record")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    END_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    segment_id: int
    end_segment: bool
    record: _containers.RepeatedCompositeFieldContainer[DeleteRecord]
    def __init__(self, segment_id: _Optional[int] = ..., end_segment: _Optional[bool] = ..., record: _Optional[_Iterable[_Union[DeleteRecord, _Mapping]]] = ...) -> None: ...

class TruncateTableStatement(_message.Message):
    __slots__ = ("table_metadata",)
    TABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    table_metadata: TableMetadata
    def __init__(self, table_metadata: _Optional[_Union[TableMetadata, _Mapping]] = ...) -> None: ...

class CreateSchemaStatement(_message.Message):
    __slots__ = ("schema",)
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    schema: Schema
    def __init__(self, schema: _Optional[_Union[Schema, _Mapping]] = ...) -> None: ...

class AlterSchemaStatement(_message.Message):
    __slots__ = ("before", "after")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    before: Schema
    after: Schema
    def __init__(self, before: _Optional[_Union[Schema, _Mapping]] = ..., after: _Optional[_Union[Schema, _Mapping]] = ...) -> None: ...

class DropSchemaStatement(_message.Message):
    __slots__ = ("schema_name", "catalog_name")
    SCHEMA_NAME_FIELD_NUMBER: _ClassVar[int]
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    schema_name: str
    catalog_name: str
    def __init__(self, schema_name: _Optional[str] = ..., catalog_name: _Optional[str] = ...) -> None: ...

class CreateTableStatement(_message.Message):
    __slots__ = ("table",)
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table: Table
    def __init__(self, table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class AlterTableStatement(_message.Message):
    __slots__ = ("before", "after")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    before: Table
    after: Table
    def __init__(self, before: _Optional[_Union[Table, _Mapping]] = ..., after: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class DropTableStatement(_message.Message):
    __slots__ = ("table_metadata", "if_exists_clause")
    TABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_CLAUSE_FIELD_NUMBER: _ClassVar[int]
    table_metadata: TableMetadata
    if_exists_clause: bool
    def __init__(self, table_metadata: _Optional[_Union[TableMetadata, _Mapping]] = ..., if_exists_clause: _Optional[bool] = ...) -> None: ...

class SetVariableStatement(_message.Message):
    __slots__ = ("variable_metadata", "variable_value")
    VARIABLE_METADATA_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    variable_metadata: FieldMetadata
    variable_value: bytes
    def __init__(self, variable_metadata: _Optional[_Union[FieldMetadata, _Mapping]] = ..., variable_value: _Optional[bytes] = ...) -> None: ...

class Statement(_message.Message):
    __slots__ = ("type", "start_timestamp", "end_timestamp", "sql", "insert_header", "insert_data", "update_header", "update_data", "delete_header", "delete_data", "truncate_table_statement", "create_schema_statement", "drop_schema_statement", "alter_schema_statement", "create_table_statement", "alter_table_statement", "drop_table_statement", "set_variable_statement", "raw_sql_schema")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ROLLBACK: _ClassVar[Statement.Type]
        INSERT: _ClassVar[Statement.Type]
        DELETE: _ClassVar[Statement.Type]
        UPDATE: _ClassVar[Statement.Type]
        TRUNCATE_TABLE: _ClassVar[Statement.Type]
        CREATE_SCHEMA: _ClassVar[Statement.Type]
        ALTER_SCHEMA: _ClassVar[Statement.Type]
        DROP_SCHEMA: _ClassVar[Statement.Type]
        CREATE_TABLE: _ClassVar[Statement.Type]
        ALTER_TABLE: _ClassVar[Statement.Type]
        DROP_TABLE: _ClassVar[Statement.Type]
        ROLLBACK_STATEMENT: _ClassVar[Statement.Type]
        SET_VARIABLE: _ClassVar[Statement.Type]
        RAW_SQL: _ClassVar[Statement.Type]
    ROLLBACK: Statement.Type
    INSERT: Statement.Type
    DELETE: Statement.Type
    UPDATE: Statement.Type
    TRUNCATE_TABLE: Statement.Type
    CREATE_SCHEMA: Statement.Type
    ALTER_SCHEMA: Statement.Type
    DROP_SCHEMA: Statement.Type
    CREATE_TABLE: Statement.Type
    ALTER_TABLE: Statement.Type
    DROP_TABLE: Statement.Type
    ROLLBACK_STATEMENT: Statement.Type
    SET_VARIABLE: Statement.Type
    RAW_SQL: Statement.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    START_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    END_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    INSERT_HEADER_FIELD_NUMBER: _ClassVar[int]
    INSERT_DATA_FIELD_NUMBER: _ClassVar[int]
    UPDATE_HEADER_FIELD_NUMBER: _ClassVar[int]
    UPDATE_DATA_FIELD_NUMBER: _ClassVar[int]
    DELETE_HEADER_FIELD_NUMBER: _ClassVar[int]
    DELETE_DATA_FIELD_NUMBER: _ClassVar[int]
    TRUNCATE_TABLE_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_SCHEMA_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    DROP_SCHEMA_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    ALTER_SCHEMA_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TABLE_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    ALTER_TABLE_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    DROP_TABLE_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SET_VARIABLE_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    RAW_SQL_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    type: Statement.Type
    start_timestamp: int
    end_timestamp: int
    sql: str
    insert_header: InsertHeader
    insert_data: InsertData
    update_header: UpdateHeader
    update_data: UpdateData
    delete_header: DeleteHeader
    delete_data: DeleteData
    truncate_table_statement: TruncateTableStatement
    create_schema_statement: CreateSchemaStatement
    drop_schema_statement: DropSchemaStatement
    alter_schema_statement: AlterSchemaStatement
    create_table_statement: CreateTableStatement
    alter_table_statement: AlterTableStatement
    drop_table_statement: DropTableStatement
    set_variable_statement: SetVariableStatement
    raw_sql_schema: str
    def __init__(self, type: _Optional[_Union[Statement.Type, str]] = ..., start_timestamp: _Optional[int] = ..., end_timestamp: _Optional[int] = ..., sql: _Optional[str] = ..., insert_header: _Optional[_Union[InsertHeader, _Mapping]] = ..., insert_data: _Optional[_Union[InsertData, _Mapping]] = ..., update_header: _Optional[_Union[UpdateHeader, _Mapping]] = ..., update_data: _Optional[_Union[UpdateData, _Mapping]] = ..., delete_header: _Optional[_Union[DeleteHeader, _Mapping]] = ..., delete_data: _Optional[_Union[DeleteData, _Mapping]] = ..., truncate_table_statement: _Optional[_Union[TruncateTableStatement, _Mapping]] = ..., create_schema_statement: _Optional[_Union[CreateSchemaStatement, _Mapping]] = ..., drop_schema_statement: _Optional[_Union[DropSchemaStatement, _Mapping]] = ..., alter_schema_statement: _Optional[_Union[AlterSchemaStatement, _Mapping]] = ..., create_table_statement: _Optional[_Union[CreateTableStatement, _Mapping]] = ..., alter_table_statement: _Optional[_Union[AlterTableStatement, _Mapping]] = ..., drop_table_statement: _Optional[_Union[DropTableStatement, _Mapping]] = ..., set_variable_statement: _Optional[_Union[SetVariableStatement, _Mapping]] = ..., raw_sql_schema: _Optional[str] = ...) -> None: ...

class Transaction(_message.Message):
    __slots__ = ("transaction_context", "statement", "event", "segment_id", "end_segment")
    TRANSACTION_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    END_SEGMENT_FIELD_NUMBER: _ClassVar[int]
    transaction_context: TransactionContext
    statement: _containers.RepeatedCompositeFieldContainer[Statement]
    event: Event
    segment_id: int
    end_segment: bool
    def __init__(self, transaction_context: _Optional[_Union[TransactionContext, _Mapping]] = ..., statement: _Optional[_Iterable[_Union[Statement, _Mapping]]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., segment_id: _Optional[int] = ..., end_segment: _Optional[bool] = ...) -> None: ...
