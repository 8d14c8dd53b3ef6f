
¥


service.name
harbor†ƒ
*chat mJ"
openinference.span.kind
AGENTJ9
output.value)
'{'answer': 'It is 18 C.', 'days': None}