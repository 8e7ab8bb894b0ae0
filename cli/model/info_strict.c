/* `qkv info --strict F.safetensors`: the findings of an audit, a line each. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/job.h"
#include "model/model.h"
#include "qkv/files.h"

static void print_finding(void *user, const qkv_finding *finding) {
    (void)user;
    printf("%-19s  byte %-10" PRIu64 "  ", finding->rule, finding->offset);
    if (finding->tensor) printf("tensor '%s': ", finding->tensor);
    puts(finding->text);
}

static void list_finding(void *user, const qkv_finding *finding) {
    json_array_append_new(user, json_set(NULL, "rule:s offset:i tensor:o text:t", finding->rule,
                                         (int64_t)finding->offset,
                                         finding->tensor ? json_text(finding->tensor) : json_null(),
                                         finding->text));
}

static int print_audit(const char *path) {
    qkv_audit audit = qkv_audit_init();
    qkv_error error;
    if (qkv_tensor_audit(path, print_finding, NULL, &audit, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    if (audit.n_findings == 0) {
        printf("clean: %" PRId64 " tensors in %" PRIu64 " bytes; checked: header, keys, names, "
               "fields, layout, alignment, values\n",
               audit.n_tensors, audit.n_bytes);
        return EXIT_OK;
    }
    printf("%" PRId64 " %s\n", audit.n_findings, audit.n_findings == 1 ? "finding" : "findings");
    return EXIT_FAILED;
}

static int list_audit(const char *path) {
    qkv_audit audit = qkv_audit_init();
    qkv_error error;
    json_t *findings = json_array();
    if (qkv_tensor_audit(path, list_finding, findings, &audit, &error) != QKV_OK) {
        json_decref(findings);
        return cli_fail("%s", error.message);
    }
    json_t *object = json_set(NULL, "n_bytes:i n_tensors:i findings:o", (int64_t)audit.n_bytes,
                              audit.n_tensors, findings);
    return json_print(stdout, object) && audit.n_findings == 0 ? EXIT_OK : EXIT_FAILED;
}

int info_strict(const struct cli_command *command, const char *path,
                const struct cli_common *common) {
    if (!text_ends(path, ".safetensors"))
        return cli_usage(command, "--strict needs a .safetensors file, not '%s'", path);
    if (common->check_finite)
        return cli_usage(command, "--strict looks for NaN and infinity without --check-finite");
    return common->json ? list_audit(path) : print_audit(path);
}
