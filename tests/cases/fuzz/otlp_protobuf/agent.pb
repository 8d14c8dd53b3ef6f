
ö


service.name
harbor×³
*chat mJ'
gen_ai.operation.name
invoke_agentJd
gen_ai.output.messagesJ
H[{"role":"assistant","parts":[{"type":"text","content":"It is 18 C."}]}]ž
*chat mJ'
gen_ai.operation.name
execute_toolJ
gen_ai.tool.name	
look_upJ0
gen_ai.tool.call.arguments
{"city":"Porto V